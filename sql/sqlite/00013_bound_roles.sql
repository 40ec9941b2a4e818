-- +goose Up

-- The executors that a role is bound to, one name per line; empty = the whole tenant. Those of
-- a key are its call_executors, which bound all of its rights.
ALTER TABLE memberships ADD COLUMN executors TEXT NOT NULL DEFAULT '';
ALTER TABLE invitations ADD COLUMN executors TEXT NOT NULL DEFAULT '';
