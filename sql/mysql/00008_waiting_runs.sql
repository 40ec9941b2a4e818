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

-- Runs that wait when this comes. All of an executor are one line.
INSERT IGNORE INTO waiting_runs (execution_id, tenant_id, executor_id, line, place, part, open_at)
SELECT id, tenant_id, executor_id, executor_id, fire_at, part, 0 FROM executions FORCE INDEX (ix_executions_wake)
WHERE part IN (0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63)
  AND wake_at IS NOT NULL AND state IN (1, 5) AND reason IN ('waiting_for_instance', 'maintenance');
