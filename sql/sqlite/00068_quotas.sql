-- +goose Up

-- How much of a kind a tenant may have; without a row the default applies
-- (docs/adr/0052). The names of kinds are those of domain.QuotaKind.
CREATE TABLE quotas (
    tenant_id  INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    -- 0 = no limit
    capacity   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (tenant_id, kind)
);

-- The most that the schedule fires in a minute, by the newest revision;
-- -1 = not computed yet: written by a node of the previous version.
ALTER TABLE jobs ADD COLUMN fires_per_minute INTEGER NOT NULL DEFAULT -1;
-- what a tenant has of both
CREATE INDEX ix_jobs_quota ON jobs (tenant_id, state, fires_per_minute);

-- +goose Down
DROP INDEX ix_jobs_quota;
ALTER TABLE jobs DROP COLUMN fires_per_minute;
DROP TABLE quotas;
