-- +goose NO TRANSACTION
-- +goose Up

-- Scripts are documents: their versions have the whole text. Numbers and signatures stay.
CREATE TABLE IF NOT EXISTS script_versions (
    script_id  BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    -- JSON of the whole document
    spec       MEDIUMTEXT NOT NULL,
    -- Ed25519, by a key that is not in this database
    signature  VARBINARY(64) NOT NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (script_id, version),
    -- a tenant that is deleted
    KEY ix_script_versions_tenant (tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO script_versions (script_id, version, tenant_id, spec, signature, created_at, created_by)
SELECT r.script_id, r.revision, r.tenant_id, JSON_OBJECT('apiVersion', 'carillon/v1', 'name', s.name,
    'spec', JSON_OBJECT('language', s.language, 'description', s.description, 'content', r.content, 'note', r.note)), r.signature, r.created_at, r.created_by
FROM script_revisions AS r JOIN scripts AS s ON s.id = r.script_id;
DELETE FROM script_revisions;

-- language, description, revision and state are superfluous, and script_revisions is empty.
ALTER TABLE scripts ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
UPDATE scripts SET version = revision;
INSERT INTO deleted_documents (kind, id, tenant_id, name, version, document, secrets, created_at, created_by, deleted_at, deleted_by)
SELECT 'Script', id, tenant_id, name, version, '', '', created_at, created_by, updated_at, updated_by FROM scripts WHERE state = 3;
DELETE FROM scripts WHERE state = 3;
-- A version has more bytes than its content: they are counted anew.
UPDATE stored_bytes SET counted_at = 0 WHERE slot = 0;
