-- +goose NO TRANSACTION
-- +goose Up

-- What is known of a chunk without inflating it, and lines that were cut
-- (docs/adr/0025). Chunks of before have format 0, any levels and no aid.
ALTER TABLE log_chunks
    ADD COLUMN raw_bytes  INT NOT NULL DEFAULT 0,
    ADD COLUMN body_bytes INT NOT NULL DEFAULT 0,
    ADD COLUMN first_at   BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN last_at    BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN levels     SMALLINT NOT NULL DEFAULT 31,
    ADD COLUMN format     SMALLINT NOT NULL DEFAULT 0,
    ADD COLUMN dropped    BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN cut        SMALLINT NOT NULL DEFAULT 0,
    ADD COLUMN run_lines  BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN run_bytes  BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN aid        BLOB NULL;

-- What a tenant's logs took on a day (days since 1970, before compression),
-- and, with day 0, what of them is stored now (after compression).
CREATE TABLE IF NOT EXISTS log_usage (
    tenant_id  BIGINT NOT NULL,
    day        INT NOT NULL,
    line_count BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, day)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS log_usage;
DELETE FROM log_chunks WHERE format <> 0 OR cut <> 0;
ALTER TABLE log_chunks
    DROP COLUMN raw_bytes, DROP COLUMN body_bytes, DROP COLUMN first_at, DROP COLUMN last_at, DROP COLUMN levels, DROP COLUMN format,
    DROP COLUMN dropped, DROP COLUMN cut, DROP COLUMN run_lines, DROP COLUMN run_bytes, DROP COLUMN aid;
