-- +goose NO TRANSACTION
-- +goose Up

-- The boot id of the node that is telling a delivery, empty when nobody is:
-- what a dead node had claimed is free when its lease has ended.
ALTER TABLE deliveries ADD COLUMN claimed_by TEXT NOT NULL DEFAULT '';
CREATE INDEX ix_deliveries_claim ON deliveries (claimed_by);

-- +goose Down
DROP INDEX ix_deliveries_claim;
ALTER TABLE deliveries DROP COLUMN claimed_by;
