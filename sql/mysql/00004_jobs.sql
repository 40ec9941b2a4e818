-- +goose NO TRANSACTION
-- +goose Up

-- name, handler, description, labels and owner are copies out of the current
-- revision's spec, for lists and their filters.
CREATE TABLE IF NOT EXISTS jobs (
    id               BIGINT NOT NULL,
    tenant_id        BIGINT NOT NULL,
    executor_id      BIGINT NOT NULL,
    part             TINYINT NOT NULL,
    state            TINYINT NOT NULL,
    name             VARCHAR(190) NOT NULL,
    -- NULL once deleted, so that the name is free again
    live_name        VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    handler          VARCHAR(190) NOT NULL,
    description      TEXT NOT NULL,
    -- "\nkey=value\n" per label
    labels           TEXT NOT NULL,
    owner            VARCHAR(512) NOT NULL DEFAULT '',
    pause_note       VARCHAR(1024) NOT NULL DEFAULT '',
    source           VARCHAR(16) NOT NULL,
    declaration_hash VARCHAR(128) NOT NULL DEFAULT '',
    revision         BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    created_by       VARCHAR(190) NOT NULL DEFAULT '',
    updated_by       VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one living job per name
    UNIQUE KEY uq_jobs_live_name (tenant_id, live_name),
    -- list in name order; search by part of the name
    KEY ix_jobs_name (tenant_id, name, id),
    -- list by last change
    KEY ix_jobs_updated (tenant_id, updated_at, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS job_revisions (
    job_id     BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    spec       MEDIUMTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The row that is claimed. Far in the future = nothing is planned.
CREATE TABLE IF NOT EXISTS triggers (
    job_id       BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    part         TINYINT NOT NULL,
    executor_id  BIGINT NOT NULL,
    revision     BIGINT NOT NULL,
    next_fire_at BIGINT NOT NULL,
    last_fire_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id),
    -- claim: what is due in these partitions, and when is the next one
    KEY ix_triggers_due (part, next_fire_at),
    -- jobs in the order in which they fire next
    KEY ix_triggers_next (tenant_id, next_fire_at, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How many runs hold the job's slot, and how many wait in slot_waiters. Every
-- job has its row from the beginning; its lock is what keeps overlap out.
CREATE TABLE IF NOT EXISTS job_slots (
    job_id    BIGINT NOT NULL,
    tenant_id BIGINT NOT NULL,
    holders   INT NOT NULL DEFAULT 0,
    waiters   INT NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The queue of a job, in the order of the fire times. Changed only under the
-- lock of the job's slot row.
CREATE TABLE IF NOT EXISTS slot_waiters (
    job_id       BIGINT NOT NULL,
    fire_at      BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    PRIMARY KEY (job_id, fire_at, execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS slot_waiters;
DROP TABLE IF EXISTS job_slots;
DROP TABLE IF EXISTS triggers;
DROP TABLE IF EXISTS job_revisions;
DROP TABLE IF EXISTS jobs;
