-- +goose Up

CREATE TABLE alert_events (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    job_id       INTEGER NOT NULL DEFAULT 0,
    revision     INTEGER NOT NULL DEFAULT 0,
    execution_id INTEGER NOT NULL DEFAULT 0,
    dedupe_key   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expanded_at  INTEGER NOT NULL DEFAULT 0
);
-- one telling per event (promise P7)
CREATE UNIQUE INDEX uq_alert_events_dedupe ON alert_events (tenant_id, dedupe_key);
-- events without deliveries yet: expanded_at = 0
CREATE INDEX ix_alert_events_new ON alert_events (expanded_at, id);

CREATE TABLE deliveries (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    event_id     INTEGER NOT NULL,
    job_id       INTEGER NOT NULL DEFAULT 0,
    channel      TEXT NOT NULL,
    target       TEXT NOT NULL,
    state        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER NOT NULL,
    last_error   TEXT NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER NOT NULL DEFAULT 0
);
-- pending ones whose time has come
CREATE INDEX ix_deliveries_due ON deliveries (state, next_at);
-- delivery log of a tenant, newest first
CREATE INDEX ix_deliveries_tenant ON deliveries (tenant_id, id);
-- delivery log of a job
CREATE INDEX ix_deliveries_job ON deliveries (tenant_id, job_id, id);

-- +goose Down
DROP TABLE deliveries;
DROP TABLE alert_events;
