-- +goose NO TRANSACTION
-- +goose Up

-- What all nodes share: cluster id, fingerprint of the sealing key.
CREATE TABLE IF NOT EXISTS cluster_values (
    name  VARCHAR(64) NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row per node number that was ever used. A number is free again when its
-- heartbeat is old; at most 1023 rows, read as a whole.
CREATE TABLE IF NOT EXISTS nodes (
    id               SMALLINT NOT NULL,
    boot_id          VARCHAR(64) NOT NULL,
    name             VARCHAR(190) NOT NULL,
    executor_address VARCHAR(255) NOT NULL,
    version          VARCHAR(64) NOT NULL,
    started_at       BIGINT NOT NULL,
    heartbeat_at     BIGINT NOT NULL,
    sessions         INT NOT NULL DEFAULT 0,
    gone_at          BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Public halves of the nodes' token-signing keys.
CREATE TABLE IF NOT EXISTS signing_keys (
    id         VARCHAR(64) NOT NULL,
    public_key VARBINARY(64) NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS signing_keys;
DROP TABLE IF EXISTS nodes;
DROP TABLE IF EXISTS cluster_values;
