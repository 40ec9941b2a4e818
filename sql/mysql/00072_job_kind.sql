-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE jobs
    -- 0: of people and code; 1: of the calls of a handler; 2: of its runs as a
    -- callback
    ADD COLUMN kind TINYINT NOT NULL DEFAULT 0,
    -- how many a tenant has of the first, by state
    ADD KEY ix_jobs_kind (tenant_id, kind, state);

UPDATE jobs SET kind = CASE WHEN labels LIKE '%carillon.kind=callback%' THEN 2 ELSE 1 END
    WHERE created_by = 'carillon' AND labels LIKE '%carillon.kind=call%';

-- +goose Down
ALTER TABLE jobs
    DROP KEY ix_jobs_kind,
    DROP COLUMN kind;
