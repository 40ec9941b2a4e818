-- +goose NO TRANSACTION
-- +goose Up

-- An action on many jobs or runs, with how far it is.
CREATE TABLE IF NOT EXISTS bulk_operations (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    action      VARCHAR(32) NOT NULL,
    -- JSON: filter, parameters, who asked
    request     MEDIUMTEXT NOT NULL,
    -- running, done or cancelled
    state       VARCHAR(16) NOT NULL,
    -- items at the creation
    total       BIGINT NOT NULL,
    -- the last item that has an answer
    after_item  BIGINT NOT NULL DEFAULT 0,
    items_read  BIGINT NOT NULL DEFAULT 0,
    done        BIGINT NOT NULL DEFAULT 0,
    skipped     BIGINT NOT NULL DEFAULT 0,
    failed      BIGINT NOT NULL DEFAULT 0,
    -- the operation whose failed items these are; 0 = the filter has them
    retry_of    BIGINT NOT NULL DEFAULT 0,
    -- grows with each node that takes it
    turn        BIGINT NOT NULL DEFAULT 0,
    message     VARCHAR(500) NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL DEFAULT 0,
    -- end of the lease of the node that has it; NULL: it has ended
    wake_at     BIGINT NULL,
    PRIMARY KEY (id),
    -- which have to be worked on
    KEY ix_bulk_operations_wake (wake_at),
    -- list of a tenant
    KEY ix_bulk_operations_tenant (tenant_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Items that were skipped or have failed. Those that are done are counted.
CREATE TABLE IF NOT EXISTS bulk_items (
    operation_id BIGINT NOT NULL,
    item_id      BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    -- of the job
    name         VARCHAR(500) NOT NULL DEFAULT '',
    -- skipped or failed
    outcome      VARCHAR(16) NOT NULL,
    code         VARCHAR(64) NOT NULL DEFAULT '',
    message      VARCHAR(500) NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, item_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
