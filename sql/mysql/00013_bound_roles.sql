-- +goose NO TRANSACTION
-- +goose Up

-- The executors that a role is bound to, one name per line; empty = the whole tenant. Those of
-- a key are its call_executors, which bound all of its rights.
ALTER TABLE memberships ADD COLUMN executors VARCHAR(4096) NOT NULL DEFAULT '';
ALTER TABLE invitations ADD COLUMN executors VARCHAR(4096) NOT NULL DEFAULT '';
-- A key may have several roles, joined by a plus sign.
ALTER TABLE api_keys MODIFY COLUMN role VARCHAR(64) NOT NULL;
