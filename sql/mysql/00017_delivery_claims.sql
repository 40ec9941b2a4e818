-- +goose NO TRANSACTION
-- +goose Up

-- The boot id of the node that is telling a delivery, empty when nobody is:
-- what a dead node had claimed is free when its lease has ended.
ALTER TABLE deliveries
    ADD COLUMN claimed_by VARCHAR(64) NOT NULL DEFAULT '',
    ADD KEY ix_deliveries_claim (claimed_by);

-- +goose Down
ALTER TABLE deliveries
    DROP KEY ix_deliveries_claim,
    DROP COLUMN claimed_by;
