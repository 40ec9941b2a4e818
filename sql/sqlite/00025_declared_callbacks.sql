-- +goose Up

-- The executors that callbacks of jobs declared in an executor's code may use, one name per line;
-- empty = its own alone.
ALTER TABLE executors ADD COLUMN callbacks_to TEXT NOT NULL DEFAULT '';
