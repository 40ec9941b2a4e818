-- +goose NO TRANSACTION
-- +goose Up

-- Families (docs/adr/0022). A part names its parent and what it is (role: 1 a
-- shard, 2 and 3 the hooks before and after); its phase is 64 above that of a
-- run, so that lists and counts of runs pass over it. Parts are found through
-- uq_executions_occurrence: their keys begin with the parent's id. bound_id is
-- the only instance that may take a broadcast's shard. stage says where a parent
-- stands; picks are the shards that it repeats, as a JSON list.
ALTER TABLE executions
    ADD COLUMN parent_id   BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN role        TINYINT NOT NULL DEFAULT 0,
    ADD COLUMN shard_index INT NOT NULL DEFAULT 0,
    ADD COLUMN shard_total INT NOT NULL DEFAULT 0,
    ADD COLUMN bound_id    BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN stage       TINYINT NOT NULL DEFAULT 0,
    ADD COLUMN picks       TEXT NULL;

-- +goose Down
ALTER TABLE executions
    DROP COLUMN picks,
    DROP COLUMN stage,
    DROP COLUMN bound_id,
    DROP COLUMN shard_total,
    DROP COLUMN shard_index,
    DROP COLUMN role,
    DROP COLUMN parent_id;
