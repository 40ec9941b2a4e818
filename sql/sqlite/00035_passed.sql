-- +goose Up

-- What the choice of a run's instance left of the others: how many were looked
-- at, and which of them had no room (docs/adr/0037). 0 for runs that were not
-- offered, or by a version that left nothing.
ALTER TABLE executions ADD COLUMN passed INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executions DROP COLUMN passed;
