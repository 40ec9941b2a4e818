-- +goose NO TRANSACTION
-- +goose Up

-- Runs of log lines, compressed. The key reads an attempt in line order, and
-- old executions of a tenant for retention (their ids grow with time).
CREATE TABLE IF NOT EXISTS log_chunks (
    tenant_id    BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    attempt      INT NOT NULL,
    first_line   BIGINT NOT NULL,
    last_line    BIGINT NOT NULL,
    line_count   INT NOT NULL,
    body         MEDIUMBLOB NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, attempt, first_line)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS log_chunks;
