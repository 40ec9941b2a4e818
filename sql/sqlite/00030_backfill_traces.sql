-- +goose Up

-- The W3C trace context of the request for a backfill (traceparent), which its
-- runs' traces link to; empty when nobody records it.
ALTER TABLE backfills ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE backfills DROP COLUMN traceparent;
