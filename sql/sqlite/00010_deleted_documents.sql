-- +goose Up

-- Documents that were deleted, for 30 days. They can be restored.
CREATE TABLE deleted_documents (
    kind       TEXT NOT NULL,
    id         INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    -- JSON; empty for a versioned kind, whose versions stay where they are
    document   TEXT NOT NULL,
    -- sealed; empty: none
    secrets    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    deleted_at INTEGER NOT NULL,
    deleted_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (kind, id)
);
-- those of a tenant, the last deleted first
CREATE INDEX ix_deleted_documents_tenant ON deleted_documents (tenant_id, kind, deleted_at);
-- retention
CREATE INDEX ix_deleted_documents_age ON deleted_documents (deleted_at);

-- Calendars that were deleted before this table came.
INSERT INTO deleted_documents (kind, id, tenant_id, name, version, document, secrets, created_at, created_by, deleted_at, deleted_by)
SELECT 'Calendar', id, tenant_id, name, version, '', '', created_at, created_by, updated_at, updated_by FROM calendars WHERE state = 3;
DELETE FROM calendars WHERE state = 3;
