-- +goose Up

-- lingers: the run has ended, but its handler still runs, and the run keeps its
-- slot. It is in phase 2 then, and has a wake_at, through which the sweep finds
-- it. returned_at is when a run that lingered was known to run no more.
ALTER TABLE executions ADD COLUMN lingers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN returned_at INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executions DROP COLUMN returned_at;
ALTER TABLE executions DROP COLUMN lingers;
