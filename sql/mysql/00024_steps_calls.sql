-- +goose NO TRANSACTION
-- +goose Up

-- How far the newest attempt of a run is, as its handler says. One row per run
-- whose handler says anything.
CREATE TABLE IF NOT EXISTS execution_progress (
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    permille     INT NOT NULL,
    message      VARCHAR(1024) NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Results of named steps, which later attempts of the run find.
CREATE TABLE IF NOT EXISTS execution_steps (
    execution_id BIGINT NOT NULL,
    name         VARCHAR(128) NOT NULL,
    tenant_id    BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    output       MEDIUMBLOB NOT NULL,
    stored_at    BIGINT NOT NULL,
    PRIMARY KEY (execution_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Outbox of callbacks: runs that have ended and are to be followed by a
-- handler of their job. Written with the run's end, gone when the callback's
-- own run exists. success is 1 or 0: a lost run may still come to succeed.
CREATE TABLE IF NOT EXISTS callbacks (
    execution_id BIGINT NOT NULL,
    success      TINYINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (execution_id, success)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The executors whose handlers the key may call, as a JSON list of names;
-- empty = all of its tenant.
ALTER TABLE api_keys ADD COLUMN call_executors VARCHAR(4096) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN call_executors;
DROP TABLE IF EXISTS callbacks;
DROP TABLE IF EXISTS execution_steps;
DROP TABLE IF EXISTS execution_progress;
