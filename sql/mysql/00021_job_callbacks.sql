-- +goose NO TRANSACTION
-- +goose Up

-- Which executors and connections the callbacks of a job's current revision need, beside the
-- job's own executor (docs/adr/0106).
CREATE TABLE IF NOT EXISTS job_callbacks (
    job_id    BIGINT NOT NULL,
    -- of an executor or a connection: ids are unique among all objects
    target_id BIGINT NOT NULL,
    tenant_id BIGINT NOT NULL,
    PRIMARY KEY (job_id, target_id),
    -- jobs of a target
    KEY ix_job_callbacks_target (target_id, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
