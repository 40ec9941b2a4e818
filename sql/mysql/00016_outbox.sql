-- +goose NO TRANSACTION
-- +goose Up

-- What the transactions of the core leave to readers: one row for each topic and
-- transaction. A reader deletes the rows that it has done with (docs/adr/0102). Nodes move
-- here what the version before has in statistics_journal and callbacks. The next version
-- drops these tables.
CREATE TABLE IF NOT EXISTS outbox (
    -- 1 ends of runs, 2 callbacks, 4 events
    topic TINYINT NOT NULL,
    -- has the time
    id    BIGINT NOT NULL,
    -- a list, of any tenants
    body  MEDIUMBLOB NOT NULL,
    PRIMARY KEY (topic, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
