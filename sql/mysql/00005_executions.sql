-- +goose NO TRANSACTION
-- +goose Up

CREATE TABLE IF NOT EXISTS executions (
    id             BIGINT NOT NULL,
    tenant_id      BIGINT NOT NULL,
    job_id         BIGINT NOT NULL,
    revision       BIGINT NOT NULL,
    executor_id    BIGINT NOT NULL,
    part           TINYINT NOT NULL,
    cause          VARCHAR(16) NOT NULL,
    fire_at        BIGINT NOT NULL,
    occurrence_key VARCHAR(190) NOT NULL DEFAULT '',
    state          TINYINT NOT NULL,
    reason         VARCHAR(32) NOT NULL DEFAULT '',
    message        VARCHAR(1024) NOT NULL DEFAULT '',
    input          MEDIUMBLOB NULL,
    note           VARCHAR(1024) NOT NULL DEFAULT '',
    requested_by   VARCHAR(190) NOT NULL DEFAULT '',
    fence          BIGINT NOT NULL DEFAULT 0,
    attempt        INT NOT NULL DEFAULT 0,
    max_attempts   INT NOT NULL DEFAULT 0,
    not_before     BIGINT NOT NULL DEFAULT 0,
    -- NULL for ended runs: they leave ix_executions_wake
    wake_at        BIGINT NULL,
    expire_at      BIGINT NOT NULL DEFAULT 0,
    node_id        INT NOT NULL DEFAULT 0,
    instance_id    BIGINT NOT NULL DEFAULT 0,
    idempotent     TINYINT NOT NULL DEFAULT 0,
    holds_slot     TINYINT NOT NULL DEFAULT 0,
    deadline       BIGINT NOT NULL DEFAULT 0,
    planned_at     BIGINT NOT NULL DEFAULT 0,
    offered_at     BIGINT NOT NULL DEFAULT 0,
    granted_at     BIGINT NOT NULL DEFAULT 0,
    started_at     BIGINT NOT NULL DEFAULT 0,
    finished_at    BIGINT NOT NULL DEFAULT 0,
    output         MEDIUMBLOB NULL,
    error_kind     VARCHAR(64) NOT NULL DEFAULT '',
    error          MEDIUMTEXT NULL,
    stack          MEDIUMTEXT NULL,
    log_lines      BIGINT NOT NULL DEFAULT -1,
    PRIMARY KEY (id),
    -- no double (promise P2); the runs of a job, and its last one, by fire time
    UNIQUE KEY uq_executions_occurrence (job_id, fire_at, occurrence_key),
    -- newest runs of a tenant, one bounded scan per state, merged; counts
    KEY ix_executions_state (tenant_id, state, id),
    -- newest runs of an executor (and of an instance of it)
    KEY ix_executions_executor (tenant_id, executor_id, id),
    -- sweep; living runs of a job, through its partition
    KEY ix_executions_wake (part, wake_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A run asked for with a key exists once per job, whatever its fire time.
CREATE TABLE IF NOT EXISTS request_keys (
    tenant_id    BIGINT NOT NULL,
    job_id       BIGINT NOT NULL,
    request_key  VARCHAR(190) NOT NULL,
    execution_id BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, job_id, request_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Attempts that were followed by another one.
CREATE TABLE IF NOT EXISTS attempts (
    execution_id BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    number       INT NOT NULL,
    instance_id  BIGINT NOT NULL,
    state        TINYINT NOT NULL,
    reason       VARCHAR(32) NOT NULL DEFAULT '',
    offered_at   BIGINT NOT NULL DEFAULT 0,
    granted_at   BIGINT NOT NULL DEFAULT 0,
    started_at   BIGINT NOT NULL DEFAULT 0,
    finished_at  BIGINT NOT NULL DEFAULT 0,
    output       MEDIUMBLOB NULL,
    error_kind   VARCHAR(64) NOT NULL DEFAULT '',
    error        MEDIUMTEXT NULL,
    stack        MEDIUMTEXT NULL,
    log_lines    BIGINT NOT NULL DEFAULT -1,
    PRIMARY KEY (execution_id, fence)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS attempts;
DROP TABLE IF EXISTS request_keys;
DROP TABLE IF EXISTS executions;
