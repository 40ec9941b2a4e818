-- +goose NO TRANSACTION
-- +goose Up

-- Retention of boots, the oldest ones first.
ALTER TABLE join_token_boots ADD INDEX ix_join_token_boots_used (used_at);

-- +goose Down
ALTER TABLE join_token_boots DROP INDEX ix_join_token_boots_used;
