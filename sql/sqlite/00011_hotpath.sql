-- +goose Up

-- version counts the writes of a row: a node that knows a row as it wrote it
-- last moves it on with one guarded UPDATE and without reading it (ADR 0010).
ALTER TABLE executions ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
-- phase is the state as coarse as lists need it: 0 = alive, 1 = alive and far
-- ahead of its time, otherwise the final state. An index on the state itself
-- would have to be rewritten at every step of every run.
ALTER TABLE executions ADD COLUMN phase INTEGER NOT NULL DEFAULT 0;
UPDATE executions SET phase = state WHERE state >= 10;
UPDATE executions SET phase = 1 WHERE state = 1 AND wake_at < not_before;
DROP INDEX ix_executions_state;
-- newest runs of a tenant, one bounded scan per phase, merged; counts
CREATE INDEX ix_executions_phase ON executions (tenant_id, phase, id);

-- +goose Down
DROP INDEX ix_executions_phase;
CREATE INDEX ix_executions_state ON executions (tenant_id, state, id);
ALTER TABLE executions DROP COLUMN phase;
ALTER TABLE executions DROP COLUMN version;
