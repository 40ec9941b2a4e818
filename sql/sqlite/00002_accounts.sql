-- +goose Up

CREATE TABLE tenants (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
-- login and tenant switch by name
CREATE UNIQUE INDEX uq_tenants_name ON tenants (name);

CREATE TABLE users (
    id                   INTEGER PRIMARY KEY,
    username             TEXT NOT NULL,
    password_hash        TEXT NOT NULL,
    platform_admin       INTEGER NOT NULL DEFAULT 0,
    must_change_password INTEGER NOT NULL DEFAULT 0,
    disabled             INTEGER NOT NULL DEFAULT 0,
    session_version      INTEGER NOT NULL DEFAULT 0,
    created_at           INTEGER NOT NULL
);
-- login
CREATE UNIQUE INDEX uq_users_username ON users (username);

CREATE TABLE memberships (
    tenant_id INTEGER NOT NULL,
    user_id   INTEGER NOT NULL,
    role      TEXT NOT NULL,
    -- the members of a tenant
    PRIMARY KEY (tenant_id, user_id)
);
-- the tenants of a user, at login
CREATE INDEX ix_memberships_user ON memberships (user_id);

CREATE TABLE refresh_tokens (
    hash            BLOB NOT NULL PRIMARY KEY,
    family          INTEGER NOT NULL,
    user_id         INTEGER NOT NULL,
    tenant_id       INTEGER NOT NULL,
    session_version INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    used_at         INTEGER NOT NULL DEFAULT 0,
    -- random number of the call that used it: a repeated commit is no reuse
    used_by         INTEGER NOT NULL DEFAULT 0,
    revoked_at      INTEGER NOT NULL DEFAULT 0
);
-- revoke a family
CREATE INDEX ix_refresh_tokens_family ON refresh_tokens (family);

CREATE TABLE api_keys (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    name         TEXT NOT NULL,
    prefix       TEXT NOT NULL,
    hash         BLOB NOT NULL,
    role         TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL DEFAULT 0,
    last_used_at INTEGER NOT NULL DEFAULT 0,
    revoked_at   INTEGER NOT NULL DEFAULT 0
);
-- every request with a key
CREATE UNIQUE INDEX uq_api_keys_hash ON api_keys (hash);
-- list of a tenant
CREATE INDEX ix_api_keys_tenant ON api_keys (tenant_id, id);

CREATE TABLE join_tokens (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,
    hash        BLOB NOT NULL,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL DEFAULT 0,
    max_uses    INTEGER NOT NULL DEFAULT 0,
    uses        INTEGER NOT NULL DEFAULT 0,
    revoked_at  INTEGER NOT NULL DEFAULT 0
);
-- every registration
CREATE UNIQUE INDEX uq_join_tokens_hash ON join_tokens (hash);
-- list of an executor
CREATE INDEX ix_join_tokens_executor ON join_tokens (tenant_id, executor_id, id);

-- The boots a token has let in: a boot counts as one use, however often and to
-- however many nodes it connects.
CREATE TABLE join_token_boots (
    token_id  INTEGER NOT NULL,
    boot_id   TEXT NOT NULL,
    tenant_id INTEGER NOT NULL,
    used_at   INTEGER NOT NULL,
    PRIMARY KEY (token_id, boot_id)
);

-- +goose Down
DROP TABLE join_token_boots;
DROP TABLE join_tokens;
DROP TABLE api_keys;
DROP TABLE refresh_tokens;
DROP TABLE memberships;
DROP TABLE users;
DROP TABLE tenants;
