-- +goose Up

-- Jobs that the present builds of an executor declare and that were not taken,
-- each with why. They are replaced as a whole when builds are put into force.
CREATE TABLE refused_declarations (
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    name        TEXT NOT NULL,
    code        TEXT NOT NULL,
    message     TEXT NOT NULL,
    app_version TEXT NOT NULL,
    refused_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE refused_declarations;
