-- +goose Up

-- Which rules of time zones a node has; empty of nodes of the previous version.
ALTER TABLE nodes ADD COLUMN zone_source TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN zone_version TEXT NOT NULL DEFAULT '';
-- of what the rules say, whatever their source calls them
ALTER TABLE nodes ADD COLUMN zone_digest TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE nodes DROP COLUMN zone_digest;
ALTER TABLE nodes DROP COLUMN zone_version;
ALTER TABLE nodes DROP COLUMN zone_source;
