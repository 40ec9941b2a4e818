-- +goose Up

-- Alert channels are documents. The column settings is written for nodes of before only.
ALTER TABLE alert_channels ADD COLUMN spec TEXT NULL;
UPDATE alert_channels SET spec = '{"kind":"' || kind || '","enabled":' || enabled || ',"settings":' || settings || '}' WHERE spec IS NULL;
