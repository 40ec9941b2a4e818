-- +goose Up

-- What is known of a chunk without inflating it, and lines that were cut
-- (docs/adr/0025). Chunks of before have format 0, any levels and no aid. The
-- table is made anew because SQLite reads a row's columns in their order: the
-- body, which is often on pages of its own, has to be the last one.
ALTER TABLE log_chunks RENAME TO log_chunks_before;
CREATE TABLE log_chunks (
    tenant_id    INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    first_line   INTEGER NOT NULL,
    last_line    INTEGER NOT NULL,
    line_count   INTEGER NOT NULL,
    raw_bytes    INTEGER NOT NULL DEFAULT 0,
    body_bytes   INTEGER NOT NULL DEFAULT 0,
    first_at     INTEGER NOT NULL DEFAULT 0,
    last_at      INTEGER NOT NULL DEFAULT 0,
    levels       INTEGER NOT NULL DEFAULT 31,
    format       INTEGER NOT NULL DEFAULT 0,
    dropped      INTEGER NOT NULL DEFAULT 0,
    cut          INTEGER NOT NULL DEFAULT 0,
    run_lines    INTEGER NOT NULL DEFAULT 0,
    run_bytes    INTEGER NOT NULL DEFAULT 0,
    aid          BLOB NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, attempt, first_line)
);
INSERT INTO log_chunks (tenant_id, execution_id, attempt, first_line, last_line, line_count, body)
    SELECT tenant_id, execution_id, attempt, first_line, last_line, line_count, body FROM log_chunks_before;
DROP TABLE log_chunks_before;

-- What a tenant's logs took on a day (days since 1970, before compression),
-- and, with day 0, what of them is stored now (after compression).
CREATE TABLE log_usage (
    tenant_id  INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    line_count INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, day)
);

-- +goose Down
DROP TABLE log_usage;
DELETE FROM log_chunks WHERE format <> 0 OR cut <> 0;
ALTER TABLE log_chunks DROP COLUMN raw_bytes;
ALTER TABLE log_chunks DROP COLUMN body_bytes;
ALTER TABLE log_chunks DROP COLUMN first_at;
ALTER TABLE log_chunks DROP COLUMN last_at;
ALTER TABLE log_chunks DROP COLUMN levels;
ALTER TABLE log_chunks DROP COLUMN format;
ALTER TABLE log_chunks DROP COLUMN dropped;
ALTER TABLE log_chunks DROP COLUMN cut;
ALTER TABLE log_chunks DROP COLUMN run_lines;
ALTER TABLE log_chunks DROP COLUMN run_bytes;
ALTER TABLE log_chunks DROP COLUMN aid;
