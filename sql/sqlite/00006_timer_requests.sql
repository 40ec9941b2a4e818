-- +goose Up

-- The request that has set a timer, as its sender names it; NULL = it has no name. The run
-- of the timer keeps it beside its key, so that the same request sets no second timer when
-- the first one was cancelled meanwhile.
ALTER TABLE timers ADD COLUMN request_id TEXT NULL;
ALTER TABLE request_keys ADD COLUMN request_id TEXT NULL;
