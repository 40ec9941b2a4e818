-- +goose NO TRANSACTION
-- +goose Up

-- How many runs of a tenant (kind 1) or an executor (kind 2) may be on instances
-- at once. A subject without a row has no limit. The lock of the row is what
-- makes offers of its runs take turns. Capacity 0: the limit was taken away, and
-- the row goes with the last one that waits for it.
CREATE TABLE IF NOT EXISTS limits (
    subject_id BIGINT NOT NULL,
    kind       TINYINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    capacity   INT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (subject_id, kind),
    -- the limits of a tenant
    KEY ix_limits_tenant (tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Runs that were offered under a limit. Those of them that are on an instance
-- count; the others are forgotten at the next look (docs/adr/0009), so whatever
-- ends a run need not know of limits. Changed only under the lock of the limit.
CREATE TABLE IF NOT EXISTS limit_holders (
    subject_id   BIGINT NOT NULL,
    kind         TINYINT NOT NULL,
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    PRIMARY KEY (subject_id, kind, execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Runs that wait for room under a limit, in the order in which they get it.
-- Changed only under the lock of the limit's row.
CREATE TABLE IF NOT EXISTS limit_waiters (
    subject_id   BIGINT NOT NULL,
    kind         TINYINT NOT NULL,
    -- fire time, earlier by a second for each point of priority
    precedence   BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    PRIMARY KEY (subject_id, kind, precedence, execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Copied from the job's revision, for whoever orders runs without reading it.
ALTER TABLE executions ADD COLUMN priority SMALLINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executions DROP COLUMN priority;
DROP TABLE IF EXISTS limit_waiters;
DROP TABLE IF EXISTS limit_holders;
DROP TABLE IF EXISTS limits;
