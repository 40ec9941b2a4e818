-- +goose Up

-- What all nodes share: cluster id, fingerprint of the sealing key.
CREATE TABLE cluster_values (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row per node number that was ever used. A number is free again when its
-- heartbeat is old; at most 1023 rows, read as a whole.
CREATE TABLE nodes (
    id               INTEGER PRIMARY KEY,
    boot_id          TEXT NOT NULL,
    name             TEXT NOT NULL,
    executor_address TEXT NOT NULL,
    version          TEXT NOT NULL,
    started_at       INTEGER NOT NULL,
    heartbeat_at     INTEGER NOT NULL,
    sessions         INTEGER NOT NULL DEFAULT 0,
    gone_at          INTEGER NOT NULL DEFAULT 0
);

-- Public halves of the nodes' token-signing keys.
CREATE TABLE signing_keys (
    id         TEXT NOT NULL PRIMARY KEY,
    public_key BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

-- +goose Down
DROP TABLE signing_keys;
DROP TABLE nodes;
DROP TABLE cluster_values;
