-- +goose NO TRANSACTION
-- +goose Up

-- Who plans the triggers of a partition, and until when (docs/adr/0007). One
-- row per partition for ever; lease_until 0 = free, the term only grows.
CREATE TABLE IF NOT EXISTS partition_leases (
    part        TINYINT NOT NULL,
    node_id     SMALLINT NOT NULL DEFAULT 0,
    -- empty: its last holder stopped
    boot_id     VARCHAR(64) NOT NULL DEFAULT '',
    term        BIGINT NOT NULL DEFAULT 0,
    lease_until BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (part)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO partition_leases (part) VALUES
    (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
    (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31),
    (32), (33), (34), (35), (36), (37), (38), (39), (40), (41), (42), (43), (44), (45), (46), (47),
    (48), (49), (50), (51), (52), (53), (54), (55), (56), (57), (58), (59), (60), (61), (62), (63);

-- What a node says of itself each time it renews.
CREATE TABLE IF NOT EXISTS node_states (
    node_id SMALLINT NOT NULL,
    boot_id VARCHAR(64) NOT NULL,
    -- database clock; 0 = it is leaving and takes no partitions
    renewed_at BIGINT NOT NULL,
    -- milliseconds; positive = the node's clock is ahead of the database's
    skew    BIGINT NOT NULL,
    -- 1 while the node does not believe the database's clock
    held    TINYINT NOT NULL DEFAULT 0,
    PRIMARY KEY (node_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS node_states;
DROP TABLE IF EXISTS partition_leases;
