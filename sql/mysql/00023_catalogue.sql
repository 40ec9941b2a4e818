-- +goose NO TRANSACTION
-- +goose Up

-- What the builds of an executor's application have registered: a build is a
-- version with a set of handlers and declared jobs, named by its digest.
CREATE TABLE IF NOT EXISTS executor_builds (
    tenant_id     BIGINT NOT NULL,
    executor_id   BIGINT NOT NULL,
    digest        VARCHAR(64) NOT NULL,
    app_version   VARCHAR(190) NOT NULL DEFAULT '',
    -- as the application says; 0 = it does not
    generation    BIGINT NOT NULL DEFAULT 0,
    -- names, as JSON
    handlers      MEDIUMTEXT NOT NULL,
    -- the frame it registered with
    catalogue     MEDIUMBLOB NULL,
    -- it is one of those whose catalogues are in force
    applied       TINYINT NOT NULL DEFAULT 0,
    -- something in it could not be taken
    contested     TINYINT NOT NULL DEFAULT 0,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, digest),
    -- those in force whose instances may have left
    KEY ix_builds_applied (applied, tenant_id, executor_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What code proposes for a job and nobody has decided, or has declined.
CREATE TABLE IF NOT EXISTS job_proposals (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    -- 1 pending, 2 declined
    state       TINYINT NOT NULL,
    hash        VARCHAR(128) NOT NULL,
    build       VARCHAR(64) NOT NULL DEFAULT '',
    app_version VARCHAR(190) NOT NULL DEFAULT '',
    removal     VARCHAR(16) NOT NULL DEFAULT '',
    spec        MEDIUMTEXT NOT NULL,
    proposed_at BIGINT NOT NULL,
    decided_at  BIGINT NOT NULL DEFAULT 0,
    decided_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    UNIQUE KEY uq_job_proposals_name (tenant_id, executor_id, name),
    -- pending ones of a tenant
    KEY ix_job_proposals_state (tenant_id, state, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The build that an instance is of.
ALTER TABLE instances
    ADD COLUMN build VARCHAR(64) NOT NULL DEFAULT '',
    -- whether a build has an instance
    ADD KEY ix_instances_build (tenant_id, executor_id, build, gone_at);

-- Whose code declares a job, and what it may do with it.
ALTER TABLE jobs
    ADD COLUMN declared_by      BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN ownership        VARCHAR(16) NOT NULL DEFAULT '',
    ADD COLUMN removal          VARCHAR(16) NOT NULL DEFAULT '',
    ADD COLUMN declared_build   VARCHAR(64) NOT NULL DEFAULT '',
    ADD COLUMN declared_version VARCHAR(190) NOT NULL DEFAULT '',
    -- no build declares it any more: 1; and it was paused for that: 2
    ADD COLUMN undeclared       TINYINT NOT NULL DEFAULT 0,
    ADD KEY ix_jobs_declared (tenant_id, declared_by);

UPDATE jobs SET declared_by = executor_id WHERE declaration_hash <> '';

-- +goose Down
ALTER TABLE jobs
    DROP KEY ix_jobs_declared,
    DROP COLUMN undeclared,
    DROP COLUMN declared_version,
    DROP COLUMN declared_build,
    DROP COLUMN removal,
    DROP COLUMN ownership,
    DROP COLUMN declared_by;
ALTER TABLE instances
    DROP KEY ix_instances_build,
    DROP COLUMN build;
DROP TABLE IF EXISTS job_proposals;
DROP TABLE IF EXISTS executor_builds;
