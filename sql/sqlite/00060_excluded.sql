-- +goose Up

-- Fire times that a calendar excludes have a state of their own (17); they were
-- missed (15) with a reason. Found by the index for lists, tenant after tenant.
UPDATE executions SET state = 17, phase = 17
WHERE tenant_id IN (SELECT id FROM tenants) AND phase = 15 AND state = 15 AND reason = 'calendar';

-- +goose Down
UPDATE executions SET state = 15, phase = 15
WHERE tenant_id IN (SELECT id FROM tenants) AND phase = 17 AND state = 17;
