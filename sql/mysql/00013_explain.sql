-- +goose NO TRANSACTION
-- +goose Up

-- What kept a run from starting when it was due, as a JSON list; NULL for the
-- most, which started in time.
ALTER TABLE executions ADD COLUMN delays TEXT NULL;

-- +goose Down
ALTER TABLE executions DROP COLUMN delays;
