-- +goose Up

-- Which documents an apply with a set has written: each belongs to one set, or to none. A row
-- may outlast its document; the next apply of the set deletes it (docs/adr/0103).
CREATE TABLE document_sets (
    tenant_id INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    object_id INTEGER NOT NULL,
    set_name  TEXT NOT NULL,
    PRIMARY KEY (tenant_id, kind, object_id)
) WITHOUT ROWID;
-- those of a set
CREATE INDEX ix_document_sets_name ON document_sets (tenant_id, set_name, kind, object_id);
