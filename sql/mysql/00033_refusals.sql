-- +goose NO TRANSACTION
-- +goose Up

-- Who was turned away at the executors' port, by all nodes: a row counts all
-- that was refused to the same for the same reason. Strangers decide what is in
-- it, so the nodes bound how many rows they write and how many there are
-- (docs/adr/0034).
CREATE TABLE IF NOT EXISTS refusals (
    -- digest of code, remote, executor and instance
    subject  BINARY(16) NOT NULL,
    code     VARCHAR(64) NOT NULL,
    message  VARCHAR(512) NOT NULL,
    remote   VARCHAR(64) NOT NULL,
    executor VARCHAR(190) NOT NULL,
    instance VARCHAR(190) NOT NULL,
    node     VARCHAR(190) NOT NULL,
    times    BIGINT NOT NULL DEFAULT 0,
    first_at BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    PRIMARY KEY (subject),
    -- list, newest first; the bound and the retention, oldest first
    KEY ix_refusals_last (last_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- 1 while an instance says that it takes nothing, because its journal cannot be
-- written (Heartbeat.refusing).
ALTER TABLE instances ADD COLUMN refusing TINYINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE instances DROP COLUMN refusing;
DROP TABLE IF EXISTS refusals;
