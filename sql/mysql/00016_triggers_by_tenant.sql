-- +goose NO TRANSACTION
-- +goose Up

-- A claim may leave out tenants whose runs crowd a node's memory
-- (docs/adr/0017): with the tenant in the index it does so without reading
-- their rows.
ALTER TABLE triggers DROP INDEX ix_triggers_due, ADD INDEX ix_triggers_due (part, next_fire_at, tenant_id);

-- +goose Down
ALTER TABLE triggers DROP INDEX ix_triggers_due, ADD INDEX ix_triggers_due (part, next_fire_at);
