-- +goose Up

-- Since when an instance takes nothing new; 0 while it does.
ALTER TABLE instances ADD COLUMN draining_at INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE instances DROP COLUMN draining_at;
