-- +goose Up

-- Whether a newer instance of an executor has the same name.
CREATE INDEX ix_instances_name ON instances (executor_id, name, id);
