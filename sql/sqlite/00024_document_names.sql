-- +goose Up

-- Lists and searches of calendars and scripts by name. The unique indexes leave rows out that
-- older nodes have deleted, so that no list reads them.
CREATE INDEX ix_calendars_name ON calendars (tenant_id, name);
CREATE INDEX ix_scripts_name ON scripts (tenant_id, name);
