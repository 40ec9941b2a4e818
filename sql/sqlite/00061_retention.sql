-- +goose Up

-- What has grown old is found without reading what lives.
CREATE INDEX ix_refresh_tokens_expires ON refresh_tokens (expires_at);
CREATE INDEX ix_jobs_deleted ON jobs (updated_at, id) WHERE state = 3;

-- +goose Down
DROP INDEX ix_jobs_deleted;
DROP INDEX ix_refresh_tokens_expires;
