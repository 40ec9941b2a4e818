-- +goose Up

-- How the runs of a job ended in the last 7 days, by whole hours, for the order of lists
-- (docs/adr/0115). It changes with statistics, in the same transactions.
CREATE TABLE job_weeks (
    tenant_id   INTEGER NOT NULL,
    job_id      INTEGER NOT NULL,
    -- the row is the sum of the hours and minutes of statistics from here on; 0: it is to be
    -- made of them
    from_at     INTEGER NOT NULL,
    -- the first hour that has a run; it leaves the row when it is older than 7 days
    first_at    INTEGER NOT NULL,
    ended       INTEGER NOT NULL,
    -- -1: none ended
    failed      INTEGER NOT NULL,
    -- of 20 runs, 19 started no later and took no longer, in milliseconds; -1: none did
    late_ms     INTEGER NOT NULL,
    took_ms     INTEGER NOT NULL,
    -- the newest minutes (milliseconds since 1970) in which a run succeeded, failed, started in
    -- time and started late; 0: none did
    good_at     INTEGER NOT NULL,
    bad_at      INTEGER NOT NULL,
    punctual_at INTEGER NOT NULL,
    late_at     INTEGER NOT NULL,
    -- how many by how much (domain.Spread)
    late        BLOB NOT NULL,
    took        BLOB NOT NULL,
    PRIMARY KEY (tenant_id, job_id)
) WITHOUT ROWID;
-- lists of jobs in these orders
CREATE INDEX ix_job_weeks_failed ON job_weeks (tenant_id, failed, job_id);
CREATE INDEX ix_job_weeks_late ON job_weeks (tenant_id, late_ms, job_id);
CREATE INDEX ix_job_weeks_took ON job_weeks (tenant_id, took_ms, job_id);
-- hours that leave, and rows that are to be made
CREATE INDEX ix_job_weeks_first ON job_weeks (first_at);

INSERT INTO job_weeks (tenant_id, job_id, from_at, first_at, ended, failed, late_ms, took_ms, good_at, bad_at, punctual_at, late_at, late, took)
    SELECT tenant_id, id, 0, 0, 0, -1, -1, -1, 0, 0, 0, 0, x'', x'' FROM jobs WHERE state <> 3;
