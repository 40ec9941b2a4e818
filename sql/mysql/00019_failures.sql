-- +goose NO TRANSACTION
-- +goose Up

-- How many runs ended badly, by hour and error (docs/adr/0104). Retention deletes them with the
-- hours of statistics.
CREATE TABLE IF NOT EXISTS failure_counts (
    tenant_id   BIGINT NOT NULL,
    -- first millisecond of the hour, in UTC
    at          BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    job_id      BIGINT NOT NULL,
    -- 0: errors beyond the number that a job has in an hour
    fingerprint BIGINT NOT NULL,
    runs        BIGINT NOT NULL,
    -- the newest run, and the minute in which one ended last
    last_run    BIGINT NOT NULL,
    last_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, at, executor_id, job_id, fingerprint),
    -- runs with an error
    KEY ix_failure_counts_error (tenant_id, fingerprint, last_run),
    -- what is old
    KEY ix_failure_counts_at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The texts of fingerprints. A tenant has 2,000 of at most 200 bytes. The one that was seen
-- longest ago leaves first.
CREATE TABLE IF NOT EXISTS error_texts (
    tenant_id   BIGINT NOT NULL,
    fingerprint BIGINT NOT NULL,
    text        VARCHAR(200) NOT NULL,
    last_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, fingerprint),
    KEY ix_error_texts_last (tenant_id, last_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
