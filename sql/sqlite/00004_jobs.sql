-- +goose Up

-- name, handler, description, labels and owner are copies out of the current
-- revision's spec, for lists and their filters.
CREATE TABLE jobs (
    id               INTEGER PRIMARY KEY,
    tenant_id        INTEGER NOT NULL,
    executor_id      INTEGER NOT NULL,
    part             INTEGER NOT NULL,
    state            INTEGER NOT NULL,
    name             TEXT NOT NULL,
    handler          TEXT NOT NULL,
    description      TEXT NOT NULL,
    -- "\nkey=value\n" per label
    labels           TEXT NOT NULL,
    owner            TEXT NOT NULL DEFAULT '',
    pause_note       TEXT NOT NULL DEFAULT '',
    source           TEXT NOT NULL,
    declaration_hash TEXT NOT NULL DEFAULT '',
    revision         INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    created_by       TEXT NOT NULL DEFAULT '',
    updated_by       TEXT NOT NULL DEFAULT ''
);
-- one living job per name
CREATE UNIQUE INDEX uq_jobs_live_name ON jobs (tenant_id, name) WHERE state <> 3;
-- list in name order; search by part of the name
CREATE INDEX ix_jobs_name ON jobs (tenant_id, name, id);
-- list by last change
CREATE INDEX ix_jobs_updated ON jobs (tenant_id, updated_at, id);

CREATE TABLE job_revisions (
    job_id     INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    spec       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, revision)
);

-- The row that is claimed. Far in the future = nothing is planned.
CREATE TABLE triggers (
    job_id       INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    part         INTEGER NOT NULL,
    executor_id  INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    next_fire_at INTEGER NOT NULL,
    last_fire_at INTEGER NOT NULL DEFAULT 0
);
-- claim: what is due in these partitions, and when is the next one
CREATE INDEX ix_triggers_due ON triggers (part, next_fire_at);
-- jobs in the order in which they fire next
CREATE INDEX ix_triggers_next ON triggers (tenant_id, next_fire_at, job_id);

-- How many runs hold the job's slot, and how many wait in slot_waiters. Every
-- job has its row from the beginning; its lock is what keeps overlap out.
CREATE TABLE job_slots (
    job_id    INTEGER PRIMARY KEY,
    tenant_id INTEGER NOT NULL,
    holders   INTEGER NOT NULL DEFAULT 0,
    waiters   INTEGER NOT NULL DEFAULT 0
);

-- The queue of a job, in the order of the fire times. Changed only under the
-- lock of the job's slot row.
CREATE TABLE slot_waiters (
    job_id       INTEGER NOT NULL,
    fire_at      INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    PRIMARY KEY (job_id, fire_at, execution_id)
);

-- +goose Down
DROP TABLE slot_waiters;
DROP TABLE job_slots;
DROP TABLE triggers;
DROP TABLE job_revisions;
DROP TABLE jobs;
