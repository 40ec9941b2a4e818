-- +goose NO TRANSACTION
-- +goose Up

CREATE TABLE IF NOT EXISTS alert_events (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    kind         VARCHAR(32) NOT NULL,
    job_id       BIGINT NOT NULL DEFAULT 0,
    revision     BIGINT NOT NULL DEFAULT 0,
    execution_id BIGINT NOT NULL DEFAULT 0,
    dedupe_key   VARCHAR(190) NOT NULL,
    created_at   BIGINT NOT NULL,
    expanded_at  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- one telling per event (promise P7)
    UNIQUE KEY uq_alert_events_dedupe (tenant_id, dedupe_key),
    -- events without deliveries yet: expanded_at = 0
    KEY ix_alert_events_new (expanded_at, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS deliveries (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    event_id     BIGINT NOT NULL,
    job_id       BIGINT NOT NULL DEFAULT 0,
    channel      VARCHAR(32) NOT NULL,
    target       VARCHAR(2048) NOT NULL,
    state        TINYINT NOT NULL,
    attempts     INT NOT NULL DEFAULT 0,
    next_at      BIGINT NOT NULL,
    last_error   VARCHAR(1024) NOT NULL DEFAULT '',
    created_at   BIGINT NOT NULL,
    delivered_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- pending ones whose time has come
    KEY ix_deliveries_due (state, next_at),
    -- delivery log of a tenant, newest first
    KEY ix_deliveries_tenant (tenant_id, id),
    -- delivery log of a job
    KEY ix_deliveries_job (tenant_id, job_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS deliveries;
DROP TABLE IF EXISTS alert_events;
