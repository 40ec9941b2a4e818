-- +goose Up

-- A claim may leave out tenants whose runs crowd a node's memory
-- (docs/adr/0017): with the tenant in the index it does so without reading
-- their rows.
DROP INDEX ix_triggers_due;
CREATE INDEX ix_triggers_due ON triggers (part, next_fire_at, tenant_id);

-- +goose Down
DROP INDEX ix_triggers_due;
CREATE INDEX ix_triggers_due ON triggers (part, next_fire_at);
