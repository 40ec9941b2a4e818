-- +goose Up

-- Scripts are documents: their versions have the whole text. Numbers and signatures stay.
CREATE TABLE script_versions (
    script_id  INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    -- JSON of the whole document
    spec       TEXT NOT NULL,
    -- Ed25519, by a key that is not in this database
    signature  BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (script_id, version)
);
-- a tenant that is deleted
CREATE INDEX ix_script_versions_tenant ON script_versions (tenant_id);
INSERT INTO script_versions (script_id, version, tenant_id, spec, signature, created_at, created_by)
SELECT r.script_id, r.revision, r.tenant_id, json_object('apiVersion', 'carillon/v1', 'name', s.name,
    'spec', json_object('language', s.language, 'description', s.description, 'content', r.content, 'note', r.note)), r.signature, r.created_at, r.created_by
FROM script_revisions AS r JOIN scripts AS s ON s.id = r.script_id;
DELETE FROM script_revisions;

-- language, description, revision and state are superfluous, and script_revisions is empty.
ALTER TABLE scripts ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
UPDATE scripts SET version = revision;
INSERT INTO deleted_documents (kind, id, tenant_id, name, version, document, secrets, created_at, created_by, deleted_at, deleted_by)
SELECT 'Script', id, tenant_id, name, version, '', '', created_at, created_by, updated_at, updated_by FROM scripts WHERE state = 3;
DELETE FROM scripts WHERE state = 3;
-- A version has more bytes than its content: they are counted anew.
UPDATE stored_bytes SET counted_at = 0 WHERE slot = 0;
