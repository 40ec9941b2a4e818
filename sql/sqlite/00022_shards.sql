-- +goose Up

-- Families (docs/adr/0022). A part names its parent and what it is (role: 1 a
-- shard, 2 and 3 the hooks before and after); its phase is 64 above that of a
-- run, so that lists and counts of runs pass over it. Parts are found through
-- uq_executions_occurrence: their keys begin with the parent's id. bound_id is
-- the only instance that may take a broadcast's shard. stage says where a parent
-- stands; picks are the shards that it repeats, as a JSON list.
ALTER TABLE executions ADD COLUMN parent_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN role INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN shard_index INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN shard_total INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN bound_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN stage INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN picks TEXT NULL;

-- +goose Down
ALTER TABLE executions DROP COLUMN picks;
ALTER TABLE executions DROP COLUMN stage;
ALTER TABLE executions DROP COLUMN bound_id;
ALTER TABLE executions DROP COLUMN shard_total;
ALTER TABLE executions DROP COLUMN shard_index;
ALTER TABLE executions DROP COLUMN role;
ALTER TABLE executions DROP COLUMN parent_id;
