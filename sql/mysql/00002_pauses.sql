-- +goose NO TRANSACTION
-- +goose Up

-- Who paused a job, and when; pause_note says why. Empty and 0: the job is not
-- paused, or the pause is older than these columns.
ALTER TABLE jobs
    ADD COLUMN paused_by VARCHAR(190) NOT NULL DEFAULT '',
    ADD COLUMN paused_at BIGINT NOT NULL DEFAULT 0;
