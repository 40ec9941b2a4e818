-- +goose NO TRANSACTION
-- +goose Up

-- Address that the newest session of the process came from. Empty = unknown.
ALTER TABLE instances ADD COLUMN address VARCHAR(64) NOT NULL DEFAULT '';
