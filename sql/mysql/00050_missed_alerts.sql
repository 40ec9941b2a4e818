-- +goose NO TRANSACTION
-- +goose Up

-- One event for all runs of a job that never started in one outage: how many it
-- stands for, and when it may be told, so that they can gather. 0 for all others.
ALTER TABLE alert_events
    ADD COLUMN missed  BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN tell_at BIGINT NOT NULL DEFAULT 0,
    -- events without deliveries yet, by when they may be told
    ADD KEY ix_alert_events_tell (expanded_at, tell_at, id);

-- +goose Down
ALTER TABLE alert_events
    DROP KEY ix_alert_events_tell,
    DROP COLUMN tell_at,
    DROP COLUMN missed;
