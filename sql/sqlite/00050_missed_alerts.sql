-- +goose Up

-- One event for all runs of a job that never started in one outage: how many it
-- stands for, and when it may be told, so that they can gather. 0 for all others.
ALTER TABLE alert_events ADD COLUMN missed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alert_events ADD COLUMN tell_at INTEGER NOT NULL DEFAULT 0;
-- events without deliveries yet, by when they may be told
CREATE INDEX ix_alert_events_tell ON alert_events (expanded_at, tell_at, id);

-- +goose Down
DROP INDEX ix_alert_events_tell;
ALTER TABLE alert_events DROP COLUMN tell_at;
ALTER TABLE alert_events DROP COLUMN missed;
