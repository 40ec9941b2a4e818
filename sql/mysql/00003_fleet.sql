-- +goose NO TRANSACTION
-- +goose Up

CREATE TABLE IF NOT EXISTS executors (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    description VARCHAR(1024) NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (id),
    -- registration by name; list of a tenant in name order
    UNIQUE KEY uq_executors_name (tenant_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS handlers (
    tenant_id     BIGINT NOT NULL,
    executor_id   BIGINT NOT NULL,
    name          VARCHAR(190) NOT NULL,
    description   VARCHAR(1024) NOT NULL DEFAULT '',
    input_schema  MEDIUMBLOB NULL,
    output_schema MEDIUMBLOB NULL,
    idempotent    TINYINT NOT NULL DEFAULT 0,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS instances (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    executor_id  BIGINT NOT NULL,
    boot_id      VARCHAR(64) NOT NULL,
    name         VARCHAR(190) NOT NULL,
    host         VARCHAR(255) NOT NULL DEFAULT '',
    pid          INT NOT NULL DEFAULT 0,
    app_version  VARCHAR(190) NOT NULL DEFAULT '',
    client       VARCHAR(190) NOT NULL DEFAULT '',
    labels       TEXT NULL,
    handlers     MEDIUMTEXT NULL,
    slots        INT NOT NULL DEFAULT 0,
    running      INT NOT NULL DEFAULT 0,
    draining     TINYINT NOT NULL DEFAULT 0,
    started_at   BIGINT NOT NULL DEFAULT 0,
    connected_at BIGINT NOT NULL DEFAULT 0,
    last_seen_at BIGINT NOT NULL DEFAULT 0,
    lease_until  BIGINT NOT NULL DEFAULT 0,
    gone_at      BIGINT NOT NULL DEFAULT 0,
    gone_reason  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- registration of a boot that another node knows already
    UNIQUE KEY uq_instances_boot (tenant_id, executor_id, boot_id),
    -- list and count of an executor, living ones first
    KEY ix_instances_executor (tenant_id, executor_id, gone_at, id),
    -- leases that ran out, of all tenants
    KEY ix_instances_lease (gone_at, lease_until)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS instances;
DROP TABLE IF EXISTS handlers;
DROP TABLE IF EXISTS executors;
