-- +goose Up

-- What became of each job, and when: made, paused, resumed, deleted. Only
-- appended to, under the lock of the job's trigger; carillon verify reads it
-- to know which fire times had to run.
CREATE TABLE job_events (
    job_id     INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    -- as in jobs
    state      INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, number)
) WITHOUT ROWID;

-- The jobs that are there are known from now on; their past is not.
INSERT INTO job_events (job_id, number, tenant_id, state, at)
    SELECT id, 1, tenant_id, state, CAST(strftime('%s', 'now') AS INTEGER) * 1000 FROM jobs;

-- +goose Down
DROP TABLE job_events;
