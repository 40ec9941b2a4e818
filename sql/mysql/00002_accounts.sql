-- +goose NO TRANSACTION
-- +goose Up

CREATE TABLE IF NOT EXISTS tenants (
    id         BIGINT NOT NULL,
    name       VARCHAR(190) NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    -- login and tenant switch by name
    UNIQUE KEY uq_tenants_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS users (
    id                   BIGINT NOT NULL,
    username             VARCHAR(190) NOT NULL,
    password_hash        VARCHAR(255) NOT NULL,
    platform_admin       TINYINT NOT NULL DEFAULT 0,
    must_change_password TINYINT NOT NULL DEFAULT 0,
    disabled             TINYINT NOT NULL DEFAULT 0,
    session_version      BIGINT NOT NULL DEFAULT 0,
    created_at           BIGINT NOT NULL,
    PRIMARY KEY (id),
    -- login
    UNIQUE KEY uq_users_username (username)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS memberships (
    tenant_id BIGINT NOT NULL,
    user_id   BIGINT NOT NULL,
    role      VARCHAR(16) NOT NULL,
    -- the members of a tenant
    PRIMARY KEY (tenant_id, user_id),
    -- the tenants of a user, at login
    KEY ix_memberships_user (user_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS refresh_tokens (
    hash            BINARY(32) NOT NULL,
    family          BIGINT NOT NULL,
    user_id         BIGINT NOT NULL,
    tenant_id       BIGINT NOT NULL,
    session_version BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    used_at         BIGINT NOT NULL DEFAULT 0,
    -- random number of the call that used it: a repeated commit is no reuse
    used_by         BIGINT NOT NULL DEFAULT 0,
    revoked_at      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (hash),
    -- revoke a family
    KEY ix_refresh_tokens_family (family)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_keys (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    name         VARCHAR(190) NOT NULL,
    prefix       VARCHAR(32) NOT NULL,
    hash         BINARY(32) NOT NULL,
    role         VARCHAR(16) NOT NULL,
    created_by   VARCHAR(190) NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL DEFAULT 0,
    last_used_at BIGINT NOT NULL DEFAULT 0,
    revoked_at   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- every request with a key
    UNIQUE KEY uq_api_keys_hash (hash),
    -- list of a tenant
    KEY ix_api_keys_tenant (tenant_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS join_tokens (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    prefix      VARCHAR(32) NOT NULL,
    hash        BINARY(32) NOT NULL,
    created_by  VARCHAR(190) NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL DEFAULT 0,
    max_uses    INT NOT NULL DEFAULT 0,
    uses        INT NOT NULL DEFAULT 0,
    revoked_at  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- every registration
    UNIQUE KEY uq_join_tokens_hash (hash),
    -- list of an executor
    KEY ix_join_tokens_executor (tenant_id, executor_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The boots a token has let in: a boot counts as one use, however often and to
-- however many nodes it connects.
CREATE TABLE IF NOT EXISTS join_token_boots (
    token_id  BIGINT NOT NULL,
    boot_id   VARCHAR(64) NOT NULL,
    tenant_id BIGINT NOT NULL,
    used_at   BIGINT NOT NULL,
    PRIMARY KEY (token_id, boot_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS join_token_boots;
DROP TABLE IF EXISTS join_tokens;
DROP TABLE IF EXISTS api_keys;
DROP TABLE IF EXISTS refresh_tokens;
DROP TABLE IF EXISTS memberships;
DROP TABLE IF EXISTS users;
DROP TABLE IF EXISTS tenants;
