-- +goose Up

-- What the builds of an executor's application have registered: a build is a
-- version with a set of handlers and declared jobs, named by its digest.
CREATE TABLE executor_builds (
    tenant_id     INTEGER NOT NULL,
    executor_id   INTEGER NOT NULL,
    digest        TEXT NOT NULL,
    app_version   TEXT NOT NULL DEFAULT '',
    -- as the application says; 0 = it does not
    generation    INTEGER NOT NULL DEFAULT 0,
    -- names, as JSON
    handlers      TEXT NOT NULL,
    -- the frame it registered with
    catalogue     BLOB NULL,
    -- it is one of those whose catalogues are in force
    applied       INTEGER NOT NULL DEFAULT 0,
    -- something in it could not be taken
    contested     INTEGER NOT NULL DEFAULT 0,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, digest)
);
-- those in force whose instances may have left
CREATE INDEX ix_builds_applied ON executor_builds (applied, tenant_id, executor_id);

-- What code proposes for a job and nobody has decided, or has declined.
CREATE TABLE job_proposals (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    name        TEXT NOT NULL,
    -- 1 pending, 2 declined
    state       INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    build       TEXT NOT NULL DEFAULT '',
    app_version TEXT NOT NULL DEFAULT '',
    removal     TEXT NOT NULL DEFAULT '',
    spec        TEXT NOT NULL,
    proposed_at INTEGER NOT NULL,
    decided_at  INTEGER NOT NULL DEFAULT 0,
    decided_by  TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX uq_job_proposals_name ON job_proposals (tenant_id, executor_id, name);
-- pending ones of a tenant
CREATE INDEX ix_job_proposals_state ON job_proposals (tenant_id, state, id);

-- The build that an instance is of.
ALTER TABLE instances ADD COLUMN build TEXT NOT NULL DEFAULT '';
-- whether a build has an instance
CREATE INDEX ix_instances_build ON instances (tenant_id, executor_id, build, gone_at);

-- Whose code declares a job, and what it may do with it.
ALTER TABLE jobs ADD COLUMN declared_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN ownership TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN removal TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN declared_build TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN declared_version TEXT NOT NULL DEFAULT '';
-- no build declares it any more: 1; and it was paused for that: 2
ALTER TABLE jobs ADD COLUMN undeclared INTEGER NOT NULL DEFAULT 0;
CREATE INDEX ix_jobs_declared ON jobs (tenant_id, declared_by);

UPDATE jobs SET declared_by = executor_id WHERE declaration_hash <> '';

-- +goose Down
DROP INDEX ix_jobs_declared;
ALTER TABLE jobs DROP COLUMN undeclared;
ALTER TABLE jobs DROP COLUMN declared_version;
ALTER TABLE jobs DROP COLUMN declared_build;
ALTER TABLE jobs DROP COLUMN removal;
ALTER TABLE jobs DROP COLUMN ownership;
ALTER TABLE jobs DROP COLUMN declared_by;
DROP INDEX ix_instances_build;
ALTER TABLE instances DROP COLUMN build;
DROP TABLE job_proposals;
DROP TABLE executor_builds;
