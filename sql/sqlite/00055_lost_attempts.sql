-- +goose Up

-- How many attempts of a run were lost and followed by another one: the first
-- few cost it none of its attempts (docs/adr/0039).
ALTER TABLE executions ADD COLUMN lost_attempts INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executions DROP COLUMN lost_attempts;
