-- +goose NO TRANSACTION
-- +goose Up

-- A trigger of a fixed delay that waits for the end of a run. There is no row
-- for any other trigger. Changed only under the lock of the trigger's row.
CREATE TABLE IF NOT EXISTS trigger_waits (
    job_id       BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    PRIMARY KEY (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS calendars (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    -- 1 = in use, 3 = deleted: old revisions of jobs still name it
    state       TINYINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    -- NULL once deleted, so that the name is free again
    live_name   VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    version     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    updated_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one living calendar per name; list in name order
    UNIQUE KEY uq_calendars_live_name (tenant_id, live_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Versions never change.
CREATE TABLE IF NOT EXISTS calendar_versions (
    calendar_id BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    spec        MEDIUMTEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (calendar_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which version of a calendar the current revision of a job is planned with.
CREATE TABLE IF NOT EXISTS job_calendars (
    job_id      BIGINT NOT NULL,
    calendar_id BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    PRIMARY KEY (job_id, calendar_id),
    -- jobs that are behind a calendar; jobs of a calendar
    KEY ix_job_calendars_version (calendar_id, version, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS backfills (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    job_id       BIGINT NOT NULL,
    revision     BIGINT NOT NULL,
    state        TINYINT NOT NULL,
    scope        VARCHAR(16) NOT NULL,
    from_at      BIGINT NOT NULL,
    to_at        BIGINT NOT NULL,
    -- fire times before this one are done with
    next_at      BIGINT NOT NULL,
    concurrency  INT NOT NULL,
    planned      INT NOT NULL DEFAULT 0,
    created      INT NOT NULL DEFAULT 0,
    skipped      INT NOT NULL DEFAULT 0,
    succeeded    INT NOT NULL DEFAULT 0,
    failed       INT NOT NULL DEFAULT 0,
    -- ids of its runs that have not ended, separated by commas
    live         TEXT NOT NULL,
    note         VARCHAR(1024) NOT NULL DEFAULT '',
    message      VARCHAR(1024) NOT NULL DEFAULT '',
    -- NULL for ended ones: they leave ix_backfills_wake
    wake_at      BIGINT NULL,
    created_at   BIGINT NOT NULL,
    created_by   VARCHAR(190) NOT NULL DEFAULT '',
    finished_at  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- which have to be driven on
    KEY ix_backfills_wake (wake_at),
    -- newest of a tenant, and of a job
    KEY ix_backfills_tenant (tenant_id, id),
    KEY ix_backfills_job (tenant_id, job_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS backfills;
DROP TABLE IF EXISTS job_calendars;
DROP TABLE IF EXISTS calendar_versions;
DROP TABLE IF EXISTS calendars;
DROP TABLE IF EXISTS trigger_waits;
