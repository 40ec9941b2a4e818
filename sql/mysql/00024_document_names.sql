-- +goose NO TRANSACTION
-- +goose Up

-- Lists and searches of calendars and scripts by name. The unique indexes have live_name in
-- place of name.
CREATE INDEX ix_calendars_name ON calendars (tenant_id, name);
CREATE INDEX ix_scripts_name ON scripts (tenant_id, name);
