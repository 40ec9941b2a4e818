-- +goose Up

-- An action on many jobs or runs, with how far it is.
CREATE TABLE bulk_operations (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    action      TEXT NOT NULL,
    -- JSON: filter, parameters, who asked
    request     TEXT NOT NULL,
    -- running, done or cancelled
    state       TEXT NOT NULL,
    -- items at the creation
    total       INTEGER NOT NULL,
    -- the last item that has an answer
    after_item  INTEGER NOT NULL DEFAULT 0,
    items_read  INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0,
    skipped     INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    -- the operation whose failed items these are; 0 = the filter has them
    retry_of    INTEGER NOT NULL DEFAULT 0,
    -- grows with each node that takes it
    turn        INTEGER NOT NULL DEFAULT 0,
    message     TEXT NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL DEFAULT 0,
    -- end of the lease of the node that has it; NULL: it has ended
    wake_at     INTEGER NULL
);
-- which have to be worked on
CREATE INDEX ix_bulk_operations_wake ON bulk_operations (wake_at);
-- list of a tenant
CREATE INDEX ix_bulk_operations_tenant ON bulk_operations (tenant_id, id);

-- Items that were skipped or have failed. Those that are done are counted.
CREATE TABLE bulk_items (
    operation_id INTEGER NOT NULL,
    item_id      INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    -- of the job
    name         TEXT NOT NULL DEFAULT '',
    -- skipped or failed
    outcome      TEXT NOT NULL,
    code         TEXT NOT NULL DEFAULT '',
    message      TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, item_id)
);
