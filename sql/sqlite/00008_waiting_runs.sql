-- +goose Up

-- Runs whose row says that they wait for an instance, or for the end of maintenance. A
-- node that has room for a line reads its runs here, in the order of place. A row goes
-- with the wait. One that stays behind is removed when it is read.
CREATE TABLE waiting_runs (
    execution_id INTEGER NOT NULL PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    executor_id  INTEGER NOT NULL,
    line         INTEGER NOT NULL, -- a number of all runs that the same instances may take
    place        INTEGER NOT NULL, -- Unix ms; the run with the least is the next one
    part         INTEGER NOT NULL,
    open_at      INTEGER NOT NULL -- Unix ms; from then on nodes may take it that do not hold its partition
);
CREATE INDEX ix_waiting_runs_line ON waiting_runs (line, place, execution_id, part, open_at);

-- Runs that wait when this comes. All of an executor are one line.
INSERT INTO waiting_runs (execution_id, tenant_id, executor_id, line, place, part, open_at)
SELECT id, tenant_id, executor_id, executor_id, fire_at, part, 0 FROM executions
WHERE wake_at IS NOT NULL AND state IN (1, 5) AND reason IN ('waiting_for_instance', 'maintenance');
