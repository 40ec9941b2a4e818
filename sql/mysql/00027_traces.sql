-- +goose NO TRANSACTION
-- +goose Up

-- The W3C trace context in which a run was created (traceparent); empty for
-- runs that nobody records.
ALTER TABLE executions ADD COLUMN traceparent VARCHAR(64) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE executions DROP COLUMN traceparent;
