-- +goose NO TRANSACTION
-- +goose Up

-- 1: processes that register with the token may declare no jobs.
ALTER TABLE join_tokens ADD COLUMN no_jobs TINYINT NOT NULL DEFAULT 0;

-- 1: all instances of the build came with such a token.
ALTER TABLE executor_builds ADD COLUMN no_jobs TINYINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE executor_builds DROP COLUMN no_jobs;
ALTER TABLE join_tokens DROP COLUMN no_jobs;
