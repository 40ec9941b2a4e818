-- +goose Up

-- Which executors and connections the callbacks of a job's current revision need, beside the
-- job's own executor (docs/adr/0106).
CREATE TABLE job_callbacks (
    job_id    INTEGER NOT NULL,
    -- of an executor or a connection: ids are unique among all objects
    target_id INTEGER NOT NULL,
    tenant_id INTEGER NOT NULL,
    PRIMARY KEY (job_id, target_id)
);
-- jobs of a target
CREATE INDEX ix_job_callbacks_target ON job_callbacks (target_id, job_id);
