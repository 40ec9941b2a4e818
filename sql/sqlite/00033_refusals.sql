-- +goose Up

-- Who was turned away at the executors' port, by all nodes: a row counts all
-- that was refused to the same for the same reason. Strangers decide what is in
-- it, so the nodes bound how many rows they write and how many there are
-- (docs/adr/0034).
CREATE TABLE refusals (
    -- digest of code, remote, executor and instance
    subject  BLOB NOT NULL PRIMARY KEY,
    code     TEXT NOT NULL,
    message  TEXT NOT NULL,
    remote   TEXT NOT NULL,
    executor TEXT NOT NULL,
    instance TEXT NOT NULL,
    node     TEXT NOT NULL,
    times    INTEGER NOT NULL DEFAULT 0,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL
);
-- list, newest first; the bound and the retention, oldest first
CREATE INDEX ix_refusals_last ON refusals (last_at);

-- 1 while an instance says that it takes nothing, because its journal cannot be
-- written (Heartbeat.refusing).
ALTER TABLE instances ADD COLUMN refusing INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE instances DROP COLUMN refusing;
DROP TABLE refusals;
