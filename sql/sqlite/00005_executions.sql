-- +goose Up

CREATE TABLE executions (
    id             INTEGER PRIMARY KEY,
    tenant_id      INTEGER NOT NULL,
    job_id         INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    executor_id    INTEGER NOT NULL,
    part           INTEGER NOT NULL,
    cause          TEXT NOT NULL,
    fire_at        INTEGER NOT NULL,
    occurrence_key TEXT NOT NULL DEFAULT '',
    state          INTEGER NOT NULL,
    reason         TEXT NOT NULL DEFAULT '',
    message        TEXT NOT NULL DEFAULT '',
    input          BLOB NULL,
    note           TEXT NOT NULL DEFAULT '',
    requested_by   TEXT NOT NULL DEFAULT '',
    fence          INTEGER NOT NULL DEFAULT 0,
    attempt        INTEGER NOT NULL DEFAULT 0,
    max_attempts   INTEGER NOT NULL DEFAULT 0,
    not_before     INTEGER NOT NULL DEFAULT 0,
    -- NULL for ended runs: they leave ix_executions_wake
    wake_at        INTEGER NULL,
    expire_at      INTEGER NOT NULL DEFAULT 0,
    node_id        INTEGER NOT NULL DEFAULT 0,
    instance_id    INTEGER NOT NULL DEFAULT 0,
    idempotent     INTEGER NOT NULL DEFAULT 0,
    holds_slot     INTEGER NOT NULL DEFAULT 0,
    deadline       INTEGER NOT NULL DEFAULT 0,
    planned_at     INTEGER NOT NULL DEFAULT 0,
    offered_at     INTEGER NOT NULL DEFAULT 0,
    granted_at     INTEGER NOT NULL DEFAULT 0,
    started_at     INTEGER NOT NULL DEFAULT 0,
    finished_at    INTEGER NOT NULL DEFAULT 0,
    output         BLOB NULL,
    error_kind     TEXT NOT NULL DEFAULT '',
    error          TEXT NULL,
    stack          TEXT NULL,
    log_lines      INTEGER NOT NULL DEFAULT -1
);
-- no double (promise P2); the runs of a job, and its last one, by fire time
CREATE UNIQUE INDEX uq_executions_occurrence ON executions (job_id, fire_at, occurrence_key);
-- newest runs of a tenant, one bounded scan per state, merged; counts
CREATE INDEX ix_executions_state ON executions (tenant_id, state, id);
-- newest runs of an executor (and of an instance of it)
CREATE INDEX ix_executions_executor ON executions (tenant_id, executor_id, id);
-- sweep; living runs of a job, through its partition
CREATE INDEX ix_executions_wake ON executions (part, wake_at) WHERE wake_at IS NOT NULL;

-- A run asked for with a key exists once per job, whatever its fire time.
CREATE TABLE request_keys (
    tenant_id    INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    request_key  TEXT NOT NULL,
    execution_id INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, job_id, request_key)
);

-- Attempts that were followed by another one.
CREATE TABLE attempts (
    execution_id INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    instance_id  INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    reason       TEXT NOT NULL DEFAULT '',
    offered_at   INTEGER NOT NULL DEFAULT 0,
    granted_at   INTEGER NOT NULL DEFAULT 0,
    started_at   INTEGER NOT NULL DEFAULT 0,
    finished_at  INTEGER NOT NULL DEFAULT 0,
    output       BLOB NULL,
    error_kind   TEXT NOT NULL DEFAULT '',
    error        TEXT NULL,
    stack        TEXT NULL,
    log_lines    INTEGER NOT NULL DEFAULT -1,
    PRIMARY KEY (execution_id, fence)
);

-- +goose Down
DROP TABLE attempts;
DROP TABLE request_keys;
DROP TABLE executions;
