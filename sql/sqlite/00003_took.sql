-- +goose Up

-- How long the handler of the current attempt ran, in microseconds, as its executor
-- measured it. 0 = unknown.
ALTER TABLE executions ADD COLUMN took_us INTEGER NOT NULL DEFAULT 0;
