-- +goose Up

-- Accounts that a tenant wants as members, until their owners have answered.
CREATE TABLE invitations (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    username    TEXT NOT NULL,
    -- whose answer counts; 0: there was no such account, which the tenant is not told
    user_id     INTEGER NOT NULL,
    role        TEXT NOT NULL,
    invited_by  TEXT NOT NULL,
    inviter_id  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    -- a declined one looks to the tenant like one without an answer
    declined_at INTEGER NOT NULL DEFAULT 0
);
-- one for each name; those of a tenant
CREATE UNIQUE INDEX uq_invitations_name ON invitations (tenant_id, username);
-- those of an account
CREATE INDEX ix_invitations_user ON invitations (user_id);

-- +goose Down
DROP TABLE invitations;
