-- +goose NO TRANSACTION
-- +goose Up

-- What became of each job, and when: made, paused, resumed, deleted. Only
-- appended to, under the lock of the job's trigger; carillon verify reads it
-- to know which fire times had to run.
CREATE TABLE IF NOT EXISTS job_events (
    job_id     BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    -- as in jobs
    state      TINYINT NOT NULL,
    at         BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The jobs that are there are known from now on; their past is not.
INSERT IGNORE INTO job_events (job_id, number, tenant_id, state, at)
    SELECT id, 1, tenant_id, state, CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) FROM jobs;

-- +goose Down
DROP TABLE IF EXISTS job_events;
