-- +goose Up

-- Retention of boots, the oldest ones first.
CREATE INDEX ix_join_token_boots_used ON join_token_boots (used_at);

-- +goose Down
DROP INDEX ix_join_token_boots_used;
