-- +goose NO TRANSACTION
-- +goose Up

-- version counts the writes of a row: a node that knows a row as it wrote it
-- last moves it on with one guarded UPDATE and without reading it (ADR 0010).
--
-- phase is the state as coarse as lists need it: 0 = alive, 1 = alive and far
-- ahead of its time, otherwise the final state. An index on the state itself
-- would have to be rewritten at every step of every run.
--
-- One statement, so that it happens whole or not at all; the default fills in
-- the phase of the rows that are there.
ALTER TABLE executions
    ADD COLUMN version INT NOT NULL DEFAULT 0,
    ADD COLUMN phase   TINYINT NOT NULL DEFAULT (IF(state >= 10, state, IF(state = 1 AND wake_at < not_before, 1, 0))),
    DROP KEY ix_executions_state,
    -- newest runs of a tenant, one bounded scan per phase, merged; counts
    ADD KEY ix_executions_phase (tenant_id, phase, id);

-- +goose Down
ALTER TABLE executions
    DROP KEY ix_executions_phase,
    ADD KEY ix_executions_state (tenant_id, state, id),
    DROP COLUMN phase,
    DROP COLUMN version;
