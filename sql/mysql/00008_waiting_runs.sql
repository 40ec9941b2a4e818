-- +goose NO TRANSACTION
-- +goose Up

-- Runs whose row says that they wait for an instance, or for the end of maintenance. A
-- node that has room for a line reads its runs here, in the order of place. A row goes
-- with the wait. One that stays behind is removed when it is read.
CREATE TABLE IF NOT EXISTS waiting_runs (
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    executor_id  BIGINT NOT NULL,
    line         BIGINT NOT NULL, -- a number of all runs that the same instances may take
    place        BIGINT NOT NULL, -- Unix ms; the run with the least is the next one
    part         BIGINT NOT NULL,
    open_at      BIGINT NOT NULL, -- Unix ms; from then on nodes may take it that do not hold its partition
    PRIMARY KEY (execution_id),
    KEY ix_waiting_runs_line (line, place, execution_id, part, open_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
