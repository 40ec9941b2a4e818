-- +goose Up

-- A trigger of a fixed delay that waits for the end of a run. There is no row
-- for any other trigger. Changed only under the lock of the trigger's row.
CREATE TABLE trigger_waits (
    job_id       INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    execution_id INTEGER NOT NULL
);

CREATE TABLE calendars (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    -- 1 = in use, 3 = deleted: old revisions of jobs still name it
    state       INTEGER NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL DEFAULT '',
    updated_by  TEXT NOT NULL DEFAULT ''
);
-- one living calendar per name; list in name order
CREATE UNIQUE INDEX uq_calendars_live_name ON calendars (tenant_id, name) WHERE state <> 3;

-- Versions never change.
CREATE TABLE calendar_versions (
    calendar_id INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    tenant_id   INTEGER NOT NULL,
    spec        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (calendar_id, version)
);

-- Which version of a calendar the current revision of a job is planned with.
CREATE TABLE job_calendars (
    job_id      INTEGER NOT NULL,
    calendar_id INTEGER NOT NULL,
    tenant_id   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    PRIMARY KEY (job_id, calendar_id)
);
-- jobs that are behind a calendar; jobs of a calendar
CREATE INDEX ix_job_calendars_version ON job_calendars (calendar_id, version, job_id);

CREATE TABLE backfills (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    scope        TEXT NOT NULL,
    from_at      INTEGER NOT NULL,
    to_at        INTEGER NOT NULL,
    -- fire times before this one are done with
    next_at      INTEGER NOT NULL,
    concurrency  INTEGER NOT NULL,
    planned      INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    succeeded    INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    -- ids of its runs that have not ended, separated by commas
    live         TEXT NOT NULL,
    note         TEXT NOT NULL DEFAULT '',
    message      TEXT NOT NULL DEFAULT '',
    -- NULL for ended ones: they leave ix_backfills_wake
    wake_at      INTEGER NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL DEFAULT '',
    finished_at  INTEGER NOT NULL DEFAULT 0
);
-- which have to be driven on
CREATE INDEX ix_backfills_wake ON backfills (wake_at);
-- newest of a tenant, and of a job
CREATE INDEX ix_backfills_tenant ON backfills (tenant_id, id);
CREATE INDEX ix_backfills_job ON backfills (tenant_id, job_id, id);

-- +goose Down
DROP TABLE backfills;
DROP TABLE job_calendars;
DROP TABLE calendar_versions;
DROP TABLE calendars;
DROP TABLE trigger_waits;
