-- +goose Up

-- Who has changed what, and who was refused. Rows are added, and old ones deleted.
CREATE TABLE audit_log (
    -- 0: about the cluster
    tenant_id   INTEGER NOT NULL,
    -- has the time
    id          INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    -- 0: none
    user_id     INTEGER NOT NULL,
    key_id      INTEGER NOT NULL,
    operation   TEXT NOT NULL,
    -- done, refused
    outcome     TEXT NOT NULL,
    -- why it was refused
    code        TEXT NOT NULL,
    kind        TEXT NOT NULL,
    object_id   TEXT NOT NULL,
    object_name TEXT NOT NULL,
    -- JSON without secrets, cut at 8 KiB; empty: not recorded
    before_text TEXT NOT NULL,
    after_text  TEXT NOT NULL,
    address     TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    -- place in the chain of the tenant, and its hash; 0 and empty: not chained yet
    seq         INTEGER NOT NULL DEFAULT 0,
    hash        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id)
);
-- the chain of a tenant
CREATE INDEX ix_audit_log_seq ON audit_log (tenant_id, seq);
-- rows that are not chained yet
CREATE INDEX ix_audit_log_unchained ON audit_log (seq);
-- lists
CREATE INDEX ix_audit_log_actor ON audit_log (tenant_id, actor, id);
CREATE INDEX ix_audit_log_object ON audit_log (tenant_id, kind, object_id, id);

-- The ends of the chain of a tenant: its last row, and the last row that retention has deleted.
CREATE TABLE audit_chains (
    tenant_id INTEGER NOT NULL PRIMARY KEY,
    head_seq  INTEGER NOT NULL,
    head_id   INTEGER NOT NULL,
    head_hash TEXT NOT NULL,
    base_seq  INTEGER NOT NULL,
    base_hash TEXT NOT NULL,
    -- keyed hash of the row
    seal      TEXT NOT NULL
);
