-- +goose NO TRANSACTION
-- +goose Up

-- What the transactions of the core leave to readers: one row for each topic and
-- transaction. A reader deletes the rows that it has done with (docs/adr/0102).
CREATE TABLE IF NOT EXISTS outbox (
    -- 1 ends of runs, 2 callbacks, 4 events
    topic TINYINT NOT NULL,
    -- has the time
    id    BIGINT NOT NULL,
    -- a list, of any tenants
    body  MEDIUMBLOB NOT NULL,
    PRIMARY KEY (topic, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS statistics_journal (id BIGINT NOT NULL PRIMARY KEY, body BLOB NOT NULL);
INSERT IGNORE INTO outbox (topic, id, body) SELECT 1, id, body FROM statistics_journal;
DROP TABLE statistics_journal;
CREATE TABLE IF NOT EXISTS callbacks (execution_id BIGINT NOT NULL, success TINYINT NOT NULL, tenant_id BIGINT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (execution_id, success));
INSERT IGNORE INTO outbox (topic, id, body)
SELECT 2, execution_id + success, CONCAT('[{"tenant":', tenant_id, ',"run":', execution_id, ',"success":', IF(success = 1, 'true', 'false'), '}]')
FROM callbacks;
DROP TABLE callbacks;
