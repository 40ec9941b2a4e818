-- +goose Up

-- What the declaration of a handler says of its calls, as a document like that
-- of a job's revision; NULL: nothing (docs/adr/0053).
ALTER TABLE handlers ADD COLUMN calls TEXT NULL;
-- What the caller of a run allows one attempt to take; 0 = what its job does.
ALTER TABLE executions ADD COLUMN timeout_ms INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executions DROP COLUMN timeout_ms;
ALTER TABLE handlers DROP COLUMN calls;
