-- +goose NO TRANSACTION
-- +goose Up

-- Fire times that a calendar excludes have a state of their own (17); they were
-- missed (15) with a reason. Found by the index for lists, tenant after tenant.
-- Rows that nodes of the previous version still write stay as they are.
UPDATE tenants STRAIGHT_JOIN executions FORCE INDEX (ix_executions_phase) ON executions.tenant_id = tenants.id AND executions.phase = 15
SET executions.state = 17, executions.phase = 17
WHERE executions.state = 15 AND executions.reason = 'calendar';

-- +goose Down
UPDATE tenants STRAIGHT_JOIN executions FORCE INDEX (ix_executions_phase) ON executions.tenant_id = tenants.id AND executions.phase = 17
SET executions.state = 15, executions.phase = 15
WHERE executions.state = 17;
