-- +goose NO TRANSACTION
-- +goose Up

-- Documents that were deleted, for 30 days. They can be restored.
CREATE TABLE IF NOT EXISTS deleted_documents (
    kind       VARCHAR(32) NOT NULL,
    id         BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    name       VARCHAR(190) NOT NULL,
    version    BIGINT NOT NULL,
    -- JSON; empty for a versioned kind, whose versions stay where they are
    document   MEDIUMTEXT NOT NULL,
    -- sealed; empty: none
    secrets    MEDIUMBLOB NOT NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    deleted_at BIGINT NOT NULL,
    deleted_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (kind, id),
    -- those of a tenant, the last deleted first
    KEY ix_deleted_documents_tenant (tenant_id, kind, deleted_at),
    -- retention
    KEY ix_deleted_documents_age (deleted_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Calendars that were deleted before this table came.
INSERT INTO deleted_documents (kind, id, tenant_id, name, version, document, secrets, created_at, created_by, deleted_at, deleted_by)
SELECT 'Calendar', id, tenant_id, name, version, '', '', created_at, created_by, updated_at, updated_by FROM calendars WHERE state = 3;
DELETE FROM calendars WHERE state = 3;
