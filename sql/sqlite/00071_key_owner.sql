-- +goose Up

-- The account that answers for the key; 0: none.
ALTER TABLE api_keys ADD COLUMN owner_id INTEGER NOT NULL DEFAULT 0;

UPDATE api_keys SET owner_id = COALESCE((SELECT u.id FROM users u WHERE u.username = api_keys.created_by), 0);

-- +goose Down
ALTER TABLE api_keys DROP COLUMN owner_id;
