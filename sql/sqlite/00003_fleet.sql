-- +goose Up

CREATE TABLE executors (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL
);
-- registration by name; list of a tenant in name order
CREATE UNIQUE INDEX uq_executors_name ON executors (tenant_id, name);

CREATE TABLE handlers (
    tenant_id     INTEGER NOT NULL,
    executor_id   INTEGER NOT NULL,
    name          TEXT NOT NULL,
    description   TEXT NOT NULL DEFAULT '',
    input_schema  BLOB NULL,
    output_schema BLOB NULL,
    idempotent    INTEGER NOT NULL DEFAULT 0,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
);

CREATE TABLE instances (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    executor_id  INTEGER NOT NULL,
    boot_id      TEXT NOT NULL,
    name         TEXT NOT NULL,
    host         TEXT NOT NULL DEFAULT '',
    pid          INTEGER NOT NULL DEFAULT 0,
    app_version  TEXT NOT NULL DEFAULT '',
    client       TEXT NOT NULL DEFAULT '',
    labels       TEXT NULL,
    handlers     TEXT NULL,
    slots        INTEGER NOT NULL DEFAULT 0,
    running      INTEGER NOT NULL DEFAULT 0,
    draining     INTEGER NOT NULL DEFAULT 0,
    started_at   INTEGER NOT NULL DEFAULT 0,
    connected_at INTEGER NOT NULL DEFAULT 0,
    last_seen_at INTEGER NOT NULL DEFAULT 0,
    lease_until  INTEGER NOT NULL DEFAULT 0,
    gone_at      INTEGER NOT NULL DEFAULT 0,
    gone_reason  TEXT NOT NULL DEFAULT ''
);
-- registration of a boot that another node knows already
CREATE UNIQUE INDEX uq_instances_boot ON instances (tenant_id, executor_id, boot_id);
-- list and count of an executor, living ones first
CREATE INDEX ix_instances_executor ON instances (tenant_id, executor_id, gone_at, id);
-- leases that ran out, of all tenants
CREATE INDEX ix_instances_lease ON instances (gone_at, lease_until);

-- +goose Down
DROP TABLE instances;
DROP TABLE handlers;
DROP TABLE executors;
