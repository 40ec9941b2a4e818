-- +goose NO TRANSACTION
-- +goose Up

-- Jobs that the present builds of an executor declare and that were not taken,
-- each with why. They are replaced as a whole when builds are put into force.
CREATE TABLE IF NOT EXISTS refused_declarations (
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    code        VARCHAR(64) NOT NULL,
    message     VARCHAR(1024) NOT NULL,
    app_version VARCHAR(190) NOT NULL,
    refused_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS refused_declarations;
