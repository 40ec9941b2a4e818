-- +goose NO TRANSACTION
-- +goose Up

-- Bytes of a tenant's pending timers, in the slots in which they are counted
-- (docs/adr/0093).
ALTER TABLE timer_counts ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;

-- Bytes of what a tenant keeps beside its timers: revisions of jobs and scripts,
-- versions of calendars, catalogues. The sum over the slots counts. A slot alone may
-- be negative. Writers that come together change different slots.
CREATE TABLE IF NOT EXISTS stored_bytes (
    tenant_id  BIGINT NOT NULL,
    slot       TINYINT NOT NULL,
    bytes      BIGINT NOT NULL,
    -- in slot 0: when the rows were last counted; 0 = count them with the next round
    counted_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, slot)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
