-- +goose NO TRANSACTION
-- +goose Up

-- How much of a kind a tenant may have; without a row the default applies
-- (docs/adr/0052). The names of kinds are those of domain.QuotaKind.
CREATE TABLE IF NOT EXISTS quotas (
    tenant_id  BIGINT NOT NULL,
    kind       VARCHAR(32) NOT NULL,
    -- 0 = no limit
    capacity   BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by VARCHAR(190) NOT NULL,
    PRIMARY KEY (tenant_id, kind)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

ALTER TABLE jobs
    -- the most that the schedule fires in a minute, by the newest revision;
    -- -1 = not computed yet: written by a node of the previous version
    ADD COLUMN fires_per_minute INT NOT NULL DEFAULT -1,
    -- what a tenant has of both
    ADD KEY ix_jobs_quota (tenant_id, state, fires_per_minute);

-- +goose Down
ALTER TABLE jobs
    DROP KEY ix_jobs_quota,
    DROP COLUMN fires_per_minute;
DROP TABLE IF EXISTS quotas;
