-- +goose NO TRANSACTION
-- +goose Up

-- The authorities that sign executors' certificates, for the whole cluster. The
-- newest one signs, all that are not over are believed. The key is sealed like
-- every secret; epoch keeps two nodes from making the next one both.
CREATE TABLE IF NOT EXISTS executor_authorities (
    id          BIGINT NOT NULL,
    epoch       INT NOT NULL,
    certificate BLOB NOT NULL,
    sealed_key  BLOB NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_executor_authorities_epoch (epoch)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who may not connect, whatever it shows: a process by its boot id, or a
-- certificate by its serial number.
CREATE TABLE IF NOT EXISTS executor_denials (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    kind        VARCHAR(16) NOT NULL,
    subject     VARCHAR(64) NOT NULL,
    label       VARCHAR(190) NOT NULL DEFAULT '',
    reason      VARCHAR(1024) NOT NULL DEFAULT '',
    created_by  VARCHAR(190) NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (id),
    -- every hello, and the list of an executor
    UNIQUE KEY uq_executor_denials_subject (tenant_id, executor_id, subject),
    -- what is new, for the nodes that have to end sessions
    KEY ix_executor_denials_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- parked: the instance keeps one session only, until it is wanted (docs/adr/0020).
ALTER TABLE instances
    ADD COLUMN parked    TINYINT NOT NULL DEFAULT 0,
    ADD COLUMN wanted_at BIGINT NOT NULL DEFAULT 0,
    -- who can be wanted
    ADD KEY ix_instances_parked (parked, executor_id);

-- +goose Down
ALTER TABLE instances
    DROP KEY ix_instances_parked,
    DROP COLUMN wanted_at,
    DROP COLUMN parked;
DROP TABLE IF EXISTS executor_denials;
DROP TABLE IF EXISTS executor_authorities;
