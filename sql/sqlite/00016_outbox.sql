-- +goose Up

-- What the transactions of the core leave to readers: one row for each topic and
-- transaction. A reader deletes the rows that it has done with (docs/adr/0102). Nodes move
-- here what the version before has in statistics_journal and callbacks. The next version
-- drops these tables.
CREATE TABLE outbox (
    -- 1 ends of runs, 2 callbacks, 4 events
    topic INTEGER NOT NULL,
    -- has the time
    id    INTEGER NOT NULL,
    -- a list, of any tenants
    body  BLOB NOT NULL,
    PRIMARY KEY (topic, id)
) WITHOUT ROWID;
