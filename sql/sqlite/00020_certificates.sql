-- +goose Up

-- The authorities that sign executors' certificates, for the whole cluster. The
-- newest one signs, all that are not over are believed. The key is sealed like
-- every secret; epoch keeps two nodes from making the next one both.
CREATE TABLE executor_authorities (
    id          INTEGER NOT NULL PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    certificate BLOB NOT NULL,
    sealed_key  BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
);
CREATE UNIQUE INDEX uq_executor_authorities_epoch ON executor_authorities (epoch);

-- Who may not connect, whatever it shows: a process by its boot id, or a
-- certificate by its serial number.
CREATE TABLE executor_denials (
    id          INTEGER NOT NULL PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    label       TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL
);
-- every hello, and the list of an executor
CREATE UNIQUE INDEX uq_executor_denials_subject ON executor_denials (tenant_id, executor_id, subject);
-- what is new, for the nodes that have to end sessions
CREATE INDEX ix_executor_denials_created ON executor_denials (created_at);

-- parked: the instance keeps one session only, until it is wanted (docs/adr/0020).
ALTER TABLE instances ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN wanted_at INTEGER NOT NULL DEFAULT 0;
-- who can be wanted
CREATE INDEX ix_instances_parked ON instances (parked, executor_id);

-- +goose Down
DROP INDEX ix_instances_parked;
ALTER TABLE instances DROP COLUMN wanted_at;
ALTER TABLE instances DROP COLUMN parked;
DROP TABLE executor_denials;
DROP TABLE executor_authorities;
