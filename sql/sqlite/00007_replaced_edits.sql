-- +goose Up

-- The revision that a person had made before code that owns the job replaced it; 0 = none.
-- The job has it again when a version runs whose code does not own it.
ALTER TABLE jobs ADD COLUMN replaced_revision INTEGER NOT NULL DEFAULT 0;
