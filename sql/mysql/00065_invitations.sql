-- +goose NO TRANSACTION
-- +goose Up

-- Accounts that a tenant wants as members, until their owners have answered.
CREATE TABLE IF NOT EXISTS invitations (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    username    VARCHAR(190) NOT NULL,
    -- whose answer counts; 0: there was no such account, which the tenant is not told
    user_id     BIGINT NOT NULL,
    role        VARCHAR(16) NOT NULL,
    invited_by  VARCHAR(190) NOT NULL,
    inviter_id  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    -- a declined one looks to the tenant like one without an answer
    declined_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- one for each name; those of a tenant
    UNIQUE KEY uq_invitations_name (tenant_id, username),
    -- those of an account
    KEY ix_invitations_user (user_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS invitations;
