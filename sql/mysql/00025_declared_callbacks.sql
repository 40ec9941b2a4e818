-- +goose NO TRANSACTION
-- +goose Up

-- The executors that callbacks of jobs declared in an executor's code may use, one name per line;
-- empty = its own alone.
ALTER TABLE executors ADD COLUMN callbacks_to VARCHAR(4096) NOT NULL DEFAULT '';
