-- +goose Up

-- What the transactions of the core leave to readers: one row for each topic and
-- transaction. A reader deletes the rows that it has done with (docs/adr/0102).
CREATE TABLE outbox (
    -- 1 ends of runs, 2 callbacks, 4 events
    topic INTEGER NOT NULL,
    -- has the time
    id    INTEGER NOT NULL,
    -- a list, of any tenants
    body  BLOB NOT NULL,
    PRIMARY KEY (topic, id)
) WITHOUT ROWID;

INSERT INTO outbox (topic, id, body) SELECT 1, id, body FROM statistics_journal;
DROP TABLE statistics_journal;
INSERT INTO outbox (topic, id, body)
SELECT 2, execution_id + success, CAST('[{"tenant":' || tenant_id || ',"run":' || execution_id || ',"success":' || CASE success WHEN 1 THEN 'true' ELSE 'false' END || '}]' AS BLOB)
FROM callbacks;
DROP TABLE callbacks;
