-- +goose NO TRANSACTION
-- +goose Up

-- Who has changed what, and who was refused. Rows are added, and old ones deleted.
CREATE TABLE IF NOT EXISTS audit_log (
    -- 0: about the cluster
    tenant_id   BIGINT NOT NULL,
    -- has the time
    id          BIGINT NOT NULL,
    actor       VARCHAR(190) NOT NULL,
    -- 0: none
    user_id     BIGINT NOT NULL,
    key_id      BIGINT NOT NULL,
    operation   VARCHAR(190) NOT NULL,
    -- done, refused
    outcome     VARCHAR(16) NOT NULL,
    -- why it was refused
    code        VARCHAR(64) NOT NULL,
    kind        VARCHAR(190) NOT NULL,
    object_id   VARCHAR(190) NOT NULL,
    object_name VARCHAR(190) NOT NULL,
    -- JSON without secrets, cut at 8 KiB; empty: not recorded
    before_text TEXT NOT NULL,
    after_text  TEXT NOT NULL,
    address     VARCHAR(190) NOT NULL,
    request_id  VARCHAR(190) NOT NULL,
    -- place in the chain of the tenant, and its hash; 0 and empty: not chained yet
    seq         BIGINT NOT NULL DEFAULT 0,
    hash        VARCHAR(64) NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id),
    -- the chain of a tenant
    KEY ix_audit_log_seq (tenant_id, seq),
    -- rows that are not chained yet
    KEY ix_audit_log_unchained (seq),
    -- lists
    KEY ix_audit_log_actor (tenant_id, actor, id),
    KEY ix_audit_log_object (tenant_id, kind, object_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The ends of the chain of a tenant: its last row, and the last row that retention has deleted.
CREATE TABLE IF NOT EXISTS audit_chains (
    tenant_id BIGINT NOT NULL PRIMARY KEY,
    head_seq  BIGINT NOT NULL,
    head_id   BIGINT NOT NULL,
    head_hash VARCHAR(64) NOT NULL,
    base_seq  BIGINT NOT NULL,
    base_hash VARCHAR(64) NOT NULL,
    -- keyed hash of the row
    seal      VARCHAR(64) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
