-- +goose Up

CREATE TABLE scripts (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    -- 1 = in use, 3 = deleted: runs of old job revisions may still name it
    state       INTEGER NOT NULL,
    name        TEXT NOT NULL,
    language    TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    -- the newest one
    revision    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL DEFAULT '',
    updated_by  TEXT NOT NULL DEFAULT ''
);
-- one living script per name; list in name order
CREATE UNIQUE INDEX uq_scripts_live_name ON scripts (tenant_id, name) WHERE state <> 3;

-- Revisions never change, and none is ever removed.
CREATE TABLE script_revisions (
    script_id  INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    content    TEXT NOT NULL,
    sha256     BLOB NOT NULL,
    -- Ed25519, by a key that is not in this database
    signature  BLOB NOT NULL,
    note       TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (script_id, revision)
);

-- Which script the current revision of a job runs; revision 0 = the newest.
CREATE TABLE job_scripts (
    job_id    INTEGER PRIMARY KEY,
    script_id INTEGER NOT NULL,
    tenant_id INTEGER NOT NULL,
    revision  INTEGER NOT NULL
);
-- jobs of a script
CREATE INDEX ix_job_scripts_script ON job_scripts (script_id, job_id);

-- What agents may do for a tenant: the row with the highest revision counts,
-- and without one nothing is allowed. Rows never change.
CREATE TABLE script_policies (
    tenant_id  INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    -- languages, separated by commas
    languages  TEXT NOT NULL,
    http       INTEGER NOT NULL,
    note       TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, revision)
);

-- +goose Down
DROP TABLE script_policies;
DROP TABLE job_scripts;
DROP TABLE script_revisions;
DROP TABLE scripts;
