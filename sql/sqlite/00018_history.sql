-- +goose Up

-- How often a node has given its sign of life, in all its lives. The sum over
-- all nodes only grows, so that a database which says less than it said before
-- has lost commits (docs/adr/0019).
ALTER TABLE node_states ADD COLUMN beats INTEGER NOT NULL DEFAULT 0;

-- What an alert says beside its kind, for events that are not about a run.
ALTER TABLE alert_events ADD COLUMN detail TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE alert_events DROP COLUMN detail;
ALTER TABLE node_states DROP COLUMN beats;
