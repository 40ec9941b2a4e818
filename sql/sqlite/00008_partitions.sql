-- +goose Up

-- Who plans the triggers of a partition, and until when (docs/adr/0007). One
-- row per partition for ever; lease_until 0 = free, the term only grows.
CREATE TABLE partition_leases (
    part        INTEGER NOT NULL PRIMARY KEY,
    node_id     INTEGER NOT NULL DEFAULT 0,
    -- empty: its last holder stopped
    boot_id     TEXT NOT NULL DEFAULT '',
    term        INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0
);

INSERT INTO partition_leases (part) VALUES
    (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
    (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31),
    (32), (33), (34), (35), (36), (37), (38), (39), (40), (41), (42), (43), (44), (45), (46), (47),
    (48), (49), (50), (51), (52), (53), (54), (55), (56), (57), (58), (59), (60), (61), (62), (63);

-- What a node says of itself each time it renews.
CREATE TABLE node_states (
    node_id INTEGER NOT NULL PRIMARY KEY,
    boot_id TEXT NOT NULL,
    -- database clock; 0 = it is leaving and takes no partitions
    renewed_at INTEGER NOT NULL,
    -- milliseconds; positive = the node's clock is ahead of the database's
    skew    INTEGER NOT NULL,
    -- 1 while the node does not believe the database's clock
    held    INTEGER NOT NULL DEFAULT 0
);

-- +goose Down
DROP TABLE node_states;
DROP TABLE partition_leases;
