-- +goose NO TRANSACTION
-- +goose Up

-- Deleted jobs of a tenant that can be restored, the last deleted first (docs/adr/0112).
CREATE INDEX ix_jobs_restorable ON jobs (tenant_id, state, updated_at, id);
