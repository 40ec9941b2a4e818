-- +goose Up

-- Runs of log lines, compressed. The key reads an attempt in line order, and
-- old executions of a tenant for retention (their ids grow with time).
CREATE TABLE log_chunks (
    tenant_id    INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    first_line   INTEGER NOT NULL,
    last_line    INTEGER NOT NULL,
    line_count   INTEGER NOT NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, attempt, first_line)
);

-- +goose Down
DROP TABLE log_chunks;
