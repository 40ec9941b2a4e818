-- +goose Up

-- How many runs of a tenant (kind 1) or an executor (kind 2) may be on instances
-- at once. A subject without a row has no limit. The lock of the row is what
-- makes offers of its runs take turns. Capacity 0: the limit was taken away, and
-- the row goes with the last one that waits for it.
CREATE TABLE limits (
    subject_id INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    capacity   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (subject_id, kind)
) WITHOUT ROWID;
-- the limits of a tenant
CREATE INDEX ix_limits_tenant ON limits (tenant_id);

-- Runs that were offered under a limit. Those of them that are on an instance
-- count; the others are forgotten at the next look (docs/adr/0009), so whatever
-- ends a run need not know of limits. Changed only under the lock of the limit.
CREATE TABLE limit_holders (
    subject_id   INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    PRIMARY KEY (subject_id, kind, execution_id)
) WITHOUT ROWID;

-- Runs that wait for room under a limit, in the order in which they get it.
-- Changed only under the lock of the limit's row.
CREATE TABLE limit_waiters (
    subject_id   INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    -- fire time, earlier by a second for each point of priority
    precedence   INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    PRIMARY KEY (subject_id, kind, precedence, execution_id)
) WITHOUT ROWID;

-- Copied from the job's revision, for whoever orders runs without reading it.
ALTER TABLE executions ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executions DROP COLUMN priority;
DROP TABLE limit_waiters;
DROP TABLE limit_holders;
DROP TABLE limits;
