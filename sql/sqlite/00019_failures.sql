-- +goose Up

-- How many runs ended badly, by hour and error (docs/adr/0104). Retention deletes them with the
-- hours of statistics.
CREATE TABLE failure_counts (
    tenant_id   INTEGER NOT NULL,
    -- first millisecond of the hour, in UTC
    at          INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    job_id      INTEGER NOT NULL,
    -- 0: errors beyond the number that a job has in an hour
    fingerprint INTEGER NOT NULL,
    runs        INTEGER NOT NULL,
    -- the newest run, and the minute in which one ended last
    last_run    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, at, executor_id, job_id, fingerprint)
) WITHOUT ROWID;
-- runs with an error
CREATE INDEX ix_failure_counts_error ON failure_counts (tenant_id, fingerprint, last_run);
-- what is old
CREATE INDEX ix_failure_counts_at ON failure_counts (at);

-- The texts of fingerprints. A tenant has 2,000 of at most 200 bytes. The one that was seen
-- longest ago leaves first.
CREATE TABLE error_texts (
    tenant_id   INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    text        TEXT NOT NULL,
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, fingerprint)
) WITHOUT ROWID;
CREATE INDEX ix_error_texts_last ON error_texts (tenant_id, last_at);
