-- +goose NO TRANSACTION
-- +goose Up

-- Which rules of time zones a node has; empty of nodes of the previous version.
ALTER TABLE nodes
    ADD COLUMN zone_source  VARCHAR(190) NOT NULL DEFAULT '',
    ADD COLUMN zone_version VARCHAR(64) NOT NULL DEFAULT '',
    -- of what the rules say, whatever their source calls them
    ADD COLUMN zone_digest  VARCHAR(32) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE nodes
    DROP COLUMN zone_digest,
    DROP COLUMN zone_version,
    DROP COLUMN zone_source;
