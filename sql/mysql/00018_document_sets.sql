-- +goose NO TRANSACTION
-- +goose Up

-- Which documents an apply with a set has written: each belongs to one set, or to none. A row
-- may outlast its document; the next apply of the set deletes it (docs/adr/0103).
CREATE TABLE IF NOT EXISTS document_sets (
    tenant_id BIGINT NOT NULL,
    kind      VARCHAR(32) NOT NULL,
    object_id BIGINT NOT NULL,
    set_name  VARCHAR(128) NOT NULL,
    PRIMARY KEY (tenant_id, kind, object_id),
    -- those of a set
    KEY ix_document_sets_name (tenant_id, set_name, kind, object_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
