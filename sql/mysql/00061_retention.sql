-- +goose NO TRANSACTION
-- +goose Up

-- What has grown old is found without reading what lives.
ALTER TABLE refresh_tokens ADD KEY ix_refresh_tokens_expires (expires_at);
ALTER TABLE jobs ADD KEY ix_jobs_deleted (state, updated_at, id);

-- +goose Down
ALTER TABLE jobs DROP KEY ix_jobs_deleted;
ALTER TABLE refresh_tokens DROP KEY ix_refresh_tokens_expires;
