-- +goose NO TRANSACTION
-- +goose Up

CREATE TABLE IF NOT EXISTS scripts (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    -- 1 = in use, 3 = deleted: runs of old job revisions may still name it
    state       TINYINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    -- NULL once deleted, so that the name is free again
    live_name   VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    language    VARCHAR(16) NOT NULL,
    description VARCHAR(4096) NOT NULL DEFAULT '',
    -- the newest one
    revision    BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    updated_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one living script per name; list in name order
    UNIQUE KEY uq_scripts_live_name (tenant_id, live_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Revisions never change, and none is ever removed.
CREATE TABLE IF NOT EXISTS script_revisions (
    script_id  BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    content    MEDIUMTEXT NOT NULL,
    sha256     BINARY(32) NOT NULL,
    -- Ed25519, by a key that is not in this database
    signature  VARBINARY(64) NOT NULL,
    note       VARCHAR(1024) NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (script_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which script the current revision of a job runs; revision 0 = the newest.
CREATE TABLE IF NOT EXISTS job_scripts (
    job_id    BIGINT NOT NULL,
    script_id BIGINT NOT NULL,
    tenant_id BIGINT NOT NULL,
    revision  BIGINT NOT NULL,
    PRIMARY KEY (job_id),
    -- jobs of a script
    KEY ix_job_scripts_script (script_id, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What agents may do for a tenant: the row with the highest revision counts,
-- and without one nothing is allowed. Rows never change.
CREATE TABLE IF NOT EXISTS script_policies (
    tenant_id  BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    -- languages, separated by commas
    languages  VARCHAR(128) NOT NULL,
    http       TINYINT NOT NULL,
    note       VARCHAR(1024) NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS script_policies;
DROP TABLE IF EXISTS job_scripts;
DROP TABLE IF EXISTS script_revisions;
DROP TABLE IF EXISTS scripts;
