-- +goose Up

-- 0: of people and code; 1: of the calls of a handler; 2: of its runs as a
-- callback
ALTER TABLE jobs ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
-- how many a tenant has of the first, by state
CREATE INDEX ix_jobs_kind ON jobs (tenant_id, kind, state);

UPDATE jobs SET kind = CASE WHEN labels LIKE '%carillon.kind=callback%' THEN 2 ELSE 1 END
    WHERE created_by = 'carillon' AND labels LIKE '%carillon.kind=call%';

-- +goose Down
DROP INDEX ix_jobs_kind;
ALTER TABLE jobs DROP COLUMN kind;
