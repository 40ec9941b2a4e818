-- +goose NO TRANSACTION
-- +goose Up

-- ---- The cluster ----

-- What all nodes share: cluster id, fingerprint of the sealing key.
CREATE TABLE IF NOT EXISTS cluster_values (
    name  VARCHAR(64) NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row per node number that was ever used. A number is free again when its
-- heartbeat is old; at most 1023 rows, read as a whole.
CREATE TABLE IF NOT EXISTS nodes (
    id               SMALLINT NOT NULL,
    boot_id          VARCHAR(64) NOT NULL,
    name             VARCHAR(190) NOT NULL,
    executor_address VARCHAR(255) NOT NULL,
    version          VARCHAR(64) NOT NULL,
    started_at       BIGINT NOT NULL,
    heartbeat_at     BIGINT NOT NULL,
    sessions         INT NOT NULL DEFAULT 0,
    gone_at          BIGINT NOT NULL DEFAULT 0,
    -- which rules of time zones it plans with
    zone_source      VARCHAR(190) NOT NULL DEFAULT '',
    zone_version     VARCHAR(64) NOT NULL DEFAULT '',
    -- of what the rules say, whatever their source calls them
    zone_digest      VARCHAR(32) NOT NULL DEFAULT '',
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What a node says of itself each time it renews.
CREATE TABLE IF NOT EXISTS node_states (
    node_id    SMALLINT NOT NULL,
    boot_id    VARCHAR(64) NOT NULL,
    -- database clock; 0 = it is leaving and takes no partitions
    renewed_at BIGINT NOT NULL,
    -- milliseconds; positive = the node's clock is ahead of the database's
    skew       BIGINT NOT NULL,
    -- 1 while the node does not believe the database's clock
    held       TINYINT NOT NULL DEFAULT 0,
    -- how often a node has given its sign of life, in all its lives. The sum over
    -- all nodes only grows, so that a database which says less than it said before
    -- has lost commits (docs/adr/0019)
    beats      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (node_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

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

-- Public halves of the nodes' token-signing keys.
CREATE TABLE IF NOT EXISTS signing_keys (
    id         VARCHAR(64) NOT NULL,
    public_key VARBINARY(64) NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Tenants and accounts ----

CREATE TABLE IF NOT EXISTS tenants (
    id         BIGINT NOT NULL,
    name       VARCHAR(190) NOT NULL,
    -- 1 = enabled, 2 = disabled, 3 = deleted, and its rows go after delete_at; 4 = on
    -- its way to or from another cell, 5 = it lives in another cell (docs/adr/0088)
    state      TINYINT NOT NULL DEFAULT 1,
    -- which other cell that is; delete_at is when what it has left behind goes
    cell       VARCHAR(64) NOT NULL DEFAULT '',
    -- why it is disabled; of a tenant on its way here, the cell that this database leads
    -- to again when the move is given up
    note       VARCHAR(1024) NOT NULL DEFAULT '',
    version    BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL,
    -- when its state changed; 0 = never
    changed_at BIGINT NOT NULL DEFAULT 0,
    delete_at  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- login and tenant switch by name
    UNIQUE KEY uq_tenants_name (name),
    -- those that take nothing, and those whose rows go
    KEY ix_tenants_state (state, delete_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Other clusters of the installation, each with a database of its own, where tenants
-- can live (docs/adr/0088). People write it; there are few.
CREATE TABLE IF NOT EXISTS cells (
    name       VARCHAR(64) NOT NULL,
    -- of API and console
    url        VARCHAR(2048) NOT NULL,
    -- host:port of its executor ports, separated by commas
    executors  VARCHAR(2048) NOT NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL,
    PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How much of a kind a tenant may have; without a row the default applies
-- (docs/adr/0052). The names of kinds are those of domain.QuotaKind.
CREATE TABLE IF NOT EXISTS quotas (
    tenant_id  BIGINT NOT NULL,
    kind       VARCHAR(32) NOT NULL,
    -- 0 = no limit
    capacity   BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by VARCHAR(190) NOT NULL,
    PRIMARY KEY (tenant_id, kind)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS users (
    id                   BIGINT NOT NULL,
    username             VARCHAR(190) NOT NULL,
    password_hash        VARCHAR(255) NOT NULL,
    platform_admin       TINYINT NOT NULL DEFAULT 0,
    must_change_password TINYINT NOT NULL DEFAULT 0,
    disabled             TINYINT NOT NULL DEFAULT 0,
    session_version      BIGINT NOT NULL DEFAULT 0,
    created_at           BIGINT NOT NULL,
    PRIMARY KEY (id),
    -- login
    UNIQUE KEY uq_users_username (username)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS memberships (
    tenant_id BIGINT NOT NULL,
    user_id   BIGINT NOT NULL,
    role      VARCHAR(16) NOT NULL,
    -- the members of a tenant
    PRIMARY KEY (tenant_id, user_id),
    -- the tenants of a user, at login
    KEY ix_memberships_user (user_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Accounts that a tenant wants as members, until their owners have answered.
CREATE TABLE IF NOT EXISTS invitations (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    username    VARCHAR(190) NOT NULL,
    -- whose answer counts; 0: there was no such account, which the tenant is not told
    user_id     BIGINT NOT NULL,
    role        VARCHAR(16) NOT NULL,
    invited_by  VARCHAR(190) NOT NULL,
    inviter_id  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    -- a declined one looks to the tenant like one without an answer
    declined_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- one for each name; those of a tenant
    UNIQUE KEY uq_invitations_name (tenant_id, username),
    -- those of an account
    KEY ix_invitations_user (user_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS refresh_tokens (
    hash            BINARY(32) NOT NULL,
    family          BIGINT NOT NULL,
    user_id         BIGINT NOT NULL,
    tenant_id       BIGINT NOT NULL,
    session_version BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    used_at         BIGINT NOT NULL DEFAULT 0,
    -- random number of the call that used it: a repeated commit is no reuse
    used_by         BIGINT NOT NULL DEFAULT 0,
    revoked_at      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (hash),
    -- revoke a family
    KEY ix_refresh_tokens_family (family),
    -- retention: those that have expired, without reading the others
    KEY ix_refresh_tokens_expires (expires_at),
    -- those that go with a tenant
    KEY ix_refresh_tokens_tenant (tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_keys (
    id             BIGINT NOT NULL,
    tenant_id      BIGINT NOT NULL,
    -- the account that answers for the key; 0 = none
    owner_id       BIGINT NOT NULL DEFAULT 0,
    name           VARCHAR(190) NOT NULL,
    prefix         VARCHAR(32) NOT NULL,
    hash           BINARY(32) NOT NULL,
    role           VARCHAR(16) NOT NULL,
    -- what the key may call and set timers of, one name per line: executors with
    -- all their handlers, and "executor/handler"; both empty = all of its tenant
    call_executors VARCHAR(4096) NOT NULL DEFAULT '',
    call_handlers  VARCHAR(8192) NOT NULL DEFAULT '',
    created_by     VARCHAR(190) NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL DEFAULT 0,
    last_used_at   BIGINT NOT NULL DEFAULT 0,
    revoked_at     BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- every request with a key
    UNIQUE KEY uq_api_keys_hash (hash),
    -- list of a tenant
    KEY ix_api_keys_tenant (tenant_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Executors ----

CREATE TABLE IF NOT EXISTS executors (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    description VARCHAR(1024) NOT NULL DEFAULT '',
    -- 1: the admin nodes are its instances (docs/adr/0070)
    built_in    TINYINT NOT NULL DEFAULT 0,
    -- 1 = enabled, 2 = disabled, 3 = deleted: jobs and runs may still name it
    state       TINYINT NOT NULL DEFAULT 1,
    -- NULL once deleted, so that the name is free again
    live_name   VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    -- why it is disabled
    note        VARCHAR(1024) NOT NULL DEFAULT '',
    version     BIGINT NOT NULL DEFAULT 1,
    created_at  BIGINT NOT NULL,
    -- when its state changed; 0 = never
    changed_at  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- registration by name; list of a tenant in name order
    UNIQUE KEY uq_executors_name (tenant_id, live_name),
    -- what each node is an instance of
    KEY ix_executors_built_in (built_in),
    -- those that take nothing; retention of deleted ones
    KEY ix_executors_state (state, changed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Names that executors had before: processes and programs go on using them
-- (docs/adr/0079).
CREATE TABLE IF NOT EXISTS executor_aliases (
    tenant_id   BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    executor_id BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name),
    -- those of an executor
    KEY ix_executor_aliases_executor (executor_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS handlers (
    tenant_id     BIGINT NOT NULL,
    executor_id   BIGINT NOT NULL,
    name          VARCHAR(190) NOT NULL,
    description   VARCHAR(1024) NOT NULL DEFAULT '',
    input_schema  MEDIUMBLOB NULL,
    output_schema MEDIUMBLOB NULL,
    idempotent    TINYINT NOT NULL DEFAULT 0,
    -- what its declaration says of its calls, as a document like that of a job's
    -- revision; NULL: nothing (docs/adr/0053)
    calls         LONGTEXT NULL,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What the builds of an executor's application have registered: a build is a
-- version with a set of handlers and declared jobs, named by its digest.
CREATE TABLE IF NOT EXISTS executor_builds (
    tenant_id     BIGINT NOT NULL,
    executor_id   BIGINT NOT NULL,
    digest        VARCHAR(64) NOT NULL,
    app_version   VARCHAR(190) NOT NULL DEFAULT '',
    -- as the application says; 0 = it does not
    generation    BIGINT NOT NULL DEFAULT 0,
    -- names, as JSON
    handlers      MEDIUMTEXT NOT NULL,
    -- the frame it registered with
    catalogue     MEDIUMBLOB NULL,
    -- it is one of those whose catalogues are in force
    applied       TINYINT NOT NULL DEFAULT 0,
    -- something in it could not be taken
    contested     TINYINT NOT NULL DEFAULT 0,
    -- 1: all its instances came with a join token that has no_jobs
    no_jobs       TINYINT NOT NULL DEFAULT 0,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, digest),
    -- those in force whose instances may have left
    KEY ix_builds_applied (applied, tenant_id, executor_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS instances (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    executor_id  BIGINT NOT NULL,
    boot_id      VARCHAR(64) NOT NULL,
    name         VARCHAR(190) NOT NULL,
    host         VARCHAR(255) NOT NULL DEFAULT '',
    pid          INT NOT NULL DEFAULT 0,
    app_version  VARCHAR(190) NOT NULL DEFAULT '',
    -- digest of its row in executor_builds
    build        VARCHAR(64) NOT NULL DEFAULT '',
    client       VARCHAR(190) NOT NULL DEFAULT '',
    labels       TEXT NULL,
    handlers     MEDIUMTEXT NULL,
    slots        INT NOT NULL DEFAULT 0,
    running      INT NOT NULL DEFAULT 0,
    draining     TINYINT NOT NULL DEFAULT 0,
    -- since when it takes nothing new; 0 while it does
    draining_at  BIGINT NOT NULL DEFAULT 0,
    -- 1 while it says that it takes nothing, because its journal cannot be written
    -- (Heartbeat.refusing)
    refusing     TINYINT NOT NULL DEFAULT 0,
    -- 1 while it keeps one session only, until it is wanted (docs/adr/0020)
    parked       TINYINT NOT NULL DEFAULT 0,
    wanted_at    BIGINT NOT NULL DEFAULT 0,
    started_at   BIGINT NOT NULL DEFAULT 0,
    connected_at BIGINT NOT NULL DEFAULT 0,
    last_seen_at BIGINT NOT NULL DEFAULT 0,
    lease_until  BIGINT NOT NULL DEFAULT 0,
    gone_at      BIGINT NOT NULL DEFAULT 0,
    gone_reason  VARCHAR(190) NOT NULL DEFAULT '',
    -- since when somebody wants it to take nothing new; 0: nobody does
    drained_at   BIGINT NOT NULL DEFAULT 0,
    drained_by   VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- registration of a boot that another node knows already
    UNIQUE KEY uq_instances_boot (tenant_id, executor_id, boot_id),
    -- list and count of an executor, living ones first
    KEY ix_instances_executor (tenant_id, executor_id, gone_at, id),
    -- leases that ran out, of all tenants
    KEY ix_instances_lease (gone_at, lease_until),
    -- who is to take nothing new
    KEY ix_instances_drained (drained_at),
    -- who can be wanted
    KEY ix_instances_parked (parked, executor_id),
    -- whether a build has an instance
    KEY ix_instances_build (tenant_id, executor_id, build, gone_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS join_tokens (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    prefix      VARCHAR(32) NOT NULL,
    hash        BINARY(32) NOT NULL,
    created_by  VARCHAR(190) NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL DEFAULT 0,
    max_uses    INT NOT NULL DEFAULT 0,
    uses        INT NOT NULL DEFAULT 0,
    revoked_at  BIGINT NOT NULL DEFAULT 0,
    -- 1: processes that register with the token may declare no jobs
    no_jobs     TINYINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- every registration
    UNIQUE KEY uq_join_tokens_hash (hash),
    -- list of an executor
    KEY ix_join_tokens_executor (tenant_id, executor_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The boots a token has let in: a boot counts as one use, however often and to
-- however many nodes it connects.
CREATE TABLE IF NOT EXISTS join_token_boots (
    token_id  BIGINT NOT NULL,
    boot_id   VARCHAR(64) NOT NULL,
    tenant_id BIGINT NOT NULL,
    used_at   BIGINT NOT NULL,
    PRIMARY KEY (token_id, boot_id),
    -- retention, the oldest ones first
    KEY ix_join_token_boots_used (used_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The authorities that sign executors' certificates, for the whole cluster. The
-- newest one signs, all that are not over are believed. The key is sealed like
-- every secret; epoch keeps two nodes from making the next one both.
CREATE TABLE IF NOT EXISTS executor_authorities (
    id          BIGINT NOT NULL,
    epoch       INT NOT NULL,
    certificate BLOB NOT NULL,
    sealed_key  BLOB NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_executor_authorities_epoch (epoch)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who may not connect, whatever it shows: a process by its boot id, or a
-- certificate by its serial number.
CREATE TABLE IF NOT EXISTS executor_denials (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    kind        VARCHAR(16) NOT NULL,
    subject     VARCHAR(64) NOT NULL,
    label       VARCHAR(190) NOT NULL DEFAULT '',
    reason      VARCHAR(1024) NOT NULL DEFAULT '',
    created_by  VARCHAR(190) NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (id),
    -- every hello, and the list of an executor
    UNIQUE KEY uq_executor_denials_subject (tenant_id, executor_id, subject),
    -- what is new, for the nodes that have to end sessions
    KEY ix_executor_denials_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who was turned away at the executors' port, by all nodes: a row counts all
-- that was refused to the same for the same reason. Strangers decide what is in
-- it, so the nodes bound how many rows they write and how many there are
-- (docs/adr/0034).
CREATE TABLE IF NOT EXISTS refusals (
    -- digest of code, remote, executor and instance
    subject  BINARY(16) NOT NULL,
    code     VARCHAR(64) NOT NULL,
    message  VARCHAR(512) NOT NULL,
    remote   VARCHAR(64) NOT NULL,
    executor VARCHAR(190) NOT NULL,
    instance VARCHAR(190) NOT NULL,
    node     VARCHAR(190) NOT NULL,
    times    BIGINT NOT NULL DEFAULT 0,
    first_at BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    PRIMARY KEY (subject),
    -- list, newest first; the bound and the retention, oldest first
    KEY ix_refusals_last (last_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Jobs ----

-- name, handler, description, labels and owner are copies out of the current
-- revision's spec, for lists and their filters.
CREATE TABLE IF NOT EXISTS jobs (
    id               BIGINT NOT NULL,
    tenant_id        BIGINT NOT NULL,
    executor_id      BIGINT NOT NULL,
    part             TINYINT NOT NULL,
    state            TINYINT NOT NULL,
    -- 0: of people and code; 1: of the calls of a handler; 2: of its runs as a
    -- callback; 3: of its timers
    kind             TINYINT NOT NULL DEFAULT 0,
    name             VARCHAR(190) NOT NULL,
    -- NULL once deleted, so that the name is free again
    live_name        VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    handler          VARCHAR(190) NOT NULL,
    description      TEXT NOT NULL,
    -- "\nkey=value\n" per label
    labels           TEXT NOT NULL,
    owner            VARCHAR(512) NOT NULL DEFAULT '',
    pause_note       VARCHAR(1024) NOT NULL DEFAULT '',
    -- the executor or tenant that was disabled and paused it; 0: somebody did, or
    -- nobody
    held_by          BIGINT NOT NULL DEFAULT 0,
    revision         BIGINT NOT NULL,
    -- the most that the schedule fires in a minute, by the newest revision
    fires_per_minute INT NOT NULL,
    source           VARCHAR(16) NOT NULL,
    -- whose code declares the job, and what it may do with it (docs/adr/0023)
    declared_by      BIGINT NOT NULL DEFAULT 0,
    -- the name in the code, whatever a person has renamed the job to
    declared_name    VARCHAR(190) NOT NULL DEFAULT '',
    declaration_hash VARCHAR(128) NOT NULL DEFAULT '',
    declared_build   VARCHAR(64) NOT NULL DEFAULT '',
    declared_version VARCHAR(190) NOT NULL DEFAULT '',
    ownership        VARCHAR(16) NOT NULL DEFAULT '',
    removal          VARCHAR(16) NOT NULL DEFAULT '',
    -- no build declares it any more: 1; and it was paused for that: 2
    undeclared       TINYINT NOT NULL DEFAULT 0,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    created_by       VARCHAR(190) NOT NULL DEFAULT '',
    updated_by       VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one living job per name
    UNIQUE KEY uq_jobs_live_name (tenant_id, live_name),
    -- list in name order; search by part of the name
    KEY ix_jobs_name (tenant_id, name, id),
    -- list by last change
    KEY ix_jobs_updated (tenant_id, updated_at, id),
    -- those that an executor's code declares
    KEY ix_jobs_declared (tenant_id, declared_by, declared_name),
    -- retention: deleted ones, without reading the others
    KEY ix_jobs_deleted (state, updated_at, id),
    -- what the schedules of a tenant may fire in a minute
    KEY ix_jobs_quota (tenant_id, state, fires_per_minute),
    -- how many a tenant has of a kind, by state
    KEY ix_jobs_kind (tenant_id, kind, state),
    -- those of an executor
    KEY ix_jobs_executor (tenant_id, executor_id, state, kind),
    -- those to resume
    KEY ix_jobs_held (held_by, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS job_revisions (
    job_id     BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    spec       MEDIUMTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What became of each job, and when: made, paused, resumed, deleted. Only
-- appended to, under the lock of the job's trigger; carillon verify reads it
-- to know which fire times had to run.
CREATE TABLE IF NOT EXISTS job_events (
    job_id     BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    -- as in jobs
    state      TINYINT NOT NULL,
    at         BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    -- why, in the words of who did it
    note       VARCHAR(1024) NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The row that is claimed. Far in the future = nothing is planned.
CREATE TABLE IF NOT EXISTS triggers (
    job_id       BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    part         TINYINT NOT NULL,
    executor_id  BIGINT NOT NULL,
    revision     BIGINT NOT NULL,
    next_fire_at BIGINT NOT NULL,
    last_fire_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id),
    -- jobs in the order in which they fire next
    KEY ix_triggers_next (tenant_id, next_fire_at, job_id),
    -- claim: what is due in these partitions, and when is the next one; the tenant
    -- is in it so that a claim leaves tenants out without reading their rows
    -- (docs/adr/0017)
    KEY ix_triggers_due (part, next_fire_at, tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A trigger of a fixed delay that waits for the end of a run. There is no row
-- for any other trigger. Changed only under the lock of the trigger's row.
CREATE TABLE IF NOT EXISTS trigger_waits (
    job_id       BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    PRIMARY KEY (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What code proposes for a job and nobody has decided, or has declined.
CREATE TABLE IF NOT EXISTS job_proposals (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    -- 1 pending, 2 declined
    state       TINYINT NOT NULL,
    hash        VARCHAR(128) NOT NULL,
    build       VARCHAR(64) NOT NULL DEFAULT '',
    app_version VARCHAR(190) NOT NULL DEFAULT '',
    removal     VARCHAR(16) NOT NULL DEFAULT '',
    spec        MEDIUMTEXT NOT NULL,
    proposed_at BIGINT NOT NULL,
    decided_at  BIGINT NOT NULL DEFAULT 0,
    decided_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    UNIQUE KEY uq_job_proposals_name (tenant_id, executor_id, name),
    -- pending ones of a tenant
    KEY ix_job_proposals_state (tenant_id, state, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Jobs that the present builds of an executor declare and that were not taken,
-- each with why. They are replaced as a whole when builds are put into force.
CREATE TABLE IF NOT EXISTS refused_declarations (
    tenant_id   BIGINT NOT NULL,
    executor_id BIGINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    code        VARCHAR(64) NOT NULL,
    message     VARCHAR(1024) NOT NULL,
    app_version VARCHAR(190) NOT NULL,
    refused_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS calendars (
    id         BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    -- 1 = in use, 3 = deleted: old revisions of jobs still name it
    state      TINYINT NOT NULL,
    name       VARCHAR(190) NOT NULL,
    -- NULL once deleted, so that the name is free again
    live_name  VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    updated_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one living calendar per name; list in name order
    UNIQUE KEY uq_calendars_live_name (tenant_id, live_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Versions never change.
CREATE TABLE IF NOT EXISTS calendar_versions (
    calendar_id BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    spec        MEDIUMTEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (calendar_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which version of a calendar the current revision of a job is planned with.
CREATE TABLE IF NOT EXISTS job_calendars (
    job_id      BIGINT NOT NULL,
    calendar_id BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    PRIMARY KEY (job_id, calendar_id),
    -- jobs that are behind a calendar; jobs of a calendar
    KEY ix_job_calendars_version (calendar_id, version, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS scripts (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    -- 1 = in use, 3 = deleted: runs of old job revisions may still name it
    state       TINYINT NOT NULL,
    name        VARCHAR(190) NOT NULL,
    -- NULL once deleted, so that the name is free again
    live_name   VARCHAR(190) GENERATED ALWAYS AS (IF(state = 3, NULL, name)) VIRTUAL,
    language    VARCHAR(16) NOT NULL,
    description VARCHAR(4096) NOT NULL DEFAULT '',
    -- the newest one
    revision    BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    updated_by  VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one living script per name; list in name order
    UNIQUE KEY uq_scripts_live_name (tenant_id, live_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Revisions never change; they go with their script.
CREATE TABLE IF NOT EXISTS script_revisions (
    script_id  BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    content    MEDIUMTEXT NOT NULL,
    sha256     BINARY(32) NOT NULL,
    -- Ed25519, by a key that is not in this database
    signature  VARBINARY(64) NOT NULL,
    note       VARCHAR(1024) NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (script_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which script the current revision of a job runs; revision 0 = the newest.
CREATE TABLE IF NOT EXISTS job_scripts (
    job_id    BIGINT NOT NULL,
    script_id BIGINT NOT NULL,
    tenant_id BIGINT NOT NULL,
    revision  BIGINT NOT NULL,
    PRIMARY KEY (job_id),
    -- jobs of a script
    KEY ix_job_scripts_script (script_id, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What agents may do for a tenant: the row with the highest revision counts,
-- and without one nothing is allowed. Rows never change.
CREATE TABLE IF NOT EXISTS script_policies (
    tenant_id  BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    -- languages, separated by commas
    languages  VARCHAR(128) NOT NULL,
    http       TINYINT NOT NULL,
    -- whom the admin nodes may call, separated by commas; empty: nobody
    callback_hosts      VARCHAR(4096) NOT NULL DEFAULT '',
    callback_timeout_ms BIGINT NOT NULL DEFAULT 0,
    callbacks_per_host  INT NOT NULL DEFAULT 0,
    -- signs callbacks; sealed
    callback_secret     VARBINARY(255) NULL,
    note       VARCHAR(1024) NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Runs ----

CREATE TABLE IF NOT EXISTS executions (
    id             BIGINT NOT NULL,
    tenant_id      BIGINT NOT NULL,
    job_id         BIGINT NOT NULL,
    revision       BIGINT NOT NULL,
    executor_id    BIGINT NOT NULL,
    part           TINYINT NOT NULL,

    -- why there is the run
    cause          VARCHAR(16) NOT NULL,
    fire_at        BIGINT NOT NULL,
    occurrence_key VARCHAR(190) NOT NULL DEFAULT '',
    requested_by   VARCHAR(190) NOT NULL DEFAULT '',
    -- the W3C trace context in which it was created (traceparent); empty when
    -- nobody records it
    traceparent    VARCHAR(64) NOT NULL DEFAULT '',

    -- Families (docs/adr/0022). A part names its parent and what it is (role: 1 a
    -- shard, 2 and 3 the hooks before and after). Parts are found through
    -- uq_executions_occurrence: their keys begin with the parent's id. bound_id is
    -- the only instance that may take a broadcast's shard. stage says where a parent
    -- stands.
    parent_id      BIGINT NOT NULL DEFAULT 0,
    role           TINYINT NOT NULL DEFAULT 0,
    shard_index    INT NOT NULL DEFAULT 0,
    shard_total    INT NOT NULL DEFAULT 0,
    bound_id       BIGINT NOT NULL DEFAULT 0,
    stage          TINYINT NOT NULL DEFAULT 0,

    state          TINYINT NOT NULL,
    -- the state as coarse as lists need it: 0 = alive, 1 = alive and far ahead of
    -- its time, 2 = ended, but its handler still runs, otherwise the final state;
    -- 32 more for a timer's run and 64 for a part, so that lists and counts of runs
    -- pass over them. An index on the state itself would have to be rewritten at every step of every run
    phase          TINYINT NOT NULL DEFAULT 0,
    -- counts the writes of a row: a node that knows a row as it wrote it last moves
    -- it on with one guarded UPDATE and without reading it (docs/adr/0010)
    version        INT NOT NULL DEFAULT 0,
    reason         VARCHAR(32) NOT NULL DEFAULT '',
    -- when it is to be looked at; NULL for ended runs: they leave ix_executions_wake
    wake_at        BIGINT NULL,
    not_before     BIGINT NOT NULL DEFAULT 0,
    expire_at      BIGINT NOT NULL DEFAULT 0,
    -- copied from the job's revision, for whoever orders runs without reading it
    priority       SMALLINT NOT NULL DEFAULT 0,
    holds_slot     TINYINT NOT NULL DEFAULT 0,
    -- 1: the run has ended, but its handler still runs, and the run keeps its slot.
    -- It has a wake_at then, through which the sweep finds it
    lingers        TINYINT NOT NULL DEFAULT 0,
    -- when a run that lingered was known to run no more
    returned_at    BIGINT NOT NULL DEFAULT 0,

    -- the newest attempt
    attempt        INT NOT NULL DEFAULT 0,
    max_attempts   INT NOT NULL DEFAULT 0,
    -- how many attempts were lost and followed by another one: the first few cost
    -- the run none of its attempts (docs/adr/0039)
    lost_attempts  BIGINT NOT NULL DEFAULT 0,
    fence          BIGINT NOT NULL DEFAULT 0,
    node_id        INT NOT NULL DEFAULT 0,
    instance_id    BIGINT NOT NULL DEFAULT 0,
    -- what the choice of the instance left of the others: how many were looked at,
    -- and which of them had no room (docs/adr/0037); 0 until the run was offered
    passed         BIGINT NOT NULL DEFAULT 0,
    idempotent     TINYINT NOT NULL DEFAULT 0,
    -- what the caller of a run allows one attempt to take; 0 = what its job does
    timeout_ms     BIGINT NOT NULL DEFAULT 0,
    deadline       BIGINT NOT NULL DEFAULT 0,
    planned_at     BIGINT NOT NULL DEFAULT 0,
    offered_at     BIGINT NOT NULL DEFAULT 0,
    granted_at     BIGINT NOT NULL DEFAULT 0,
    started_at     BIGINT NOT NULL DEFAULT 0,
    finished_at    BIGINT NOT NULL DEFAULT 0,
    error_kind     VARCHAR(64) NOT NULL DEFAULT '',
    log_lines      BIGINT NOT NULL DEFAULT -1,

    -- the shards that a parent repeats, as a JSON list
    picks          TEXT NULL,
    -- what kept the run from starting when it was due, as a JSON list; NULL for the
    -- most, which started in time
    delays         TEXT NULL,
    note           VARCHAR(1024) NOT NULL DEFAULT '',
    message        VARCHAR(1024) NOT NULL DEFAULT '',
    input          MEDIUMBLOB NULL,
    output         MEDIUMBLOB NULL,
    error          MEDIUMTEXT NULL,
    stack          MEDIUMTEXT NULL,

    PRIMARY KEY (id),
    -- no double (promise P2); the runs of a job, and its last one, by fire time
    UNIQUE KEY uq_executions_occurrence (job_id, fire_at, occurrence_key),
    -- newest runs of an executor (and of an instance of it)
    KEY ix_executions_executor (tenant_id, executor_id, id),
    -- sweep; living runs of a job, through its partition
    KEY ix_executions_wake (part, wake_at),
    -- newest runs of a tenant, one bounded scan per phase, merged; counts
    KEY ix_executions_phase (tenant_id, phase, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A run asked for with a key exists once per job, whatever its fire time.
CREATE TABLE IF NOT EXISTS request_keys (
    tenant_id    BIGINT NOT NULL,
    job_id       BIGINT NOT NULL,
    request_key  VARCHAR(190) NOT NULL,
    execution_id BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, job_id, request_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A timer that waits for its time (docs/adr/0069). There may be millions, so a row
-- has no more than it needs; what is rarely set is NULL. Shortly before its time it
-- is claimed: it becomes a run, and request_keys leads from its key to that.
CREATE TABLE IF NOT EXISTS timers (
    id              BIGINT NOT NULL,
    tenant_id       BIGINT NOT NULL,
    job_id          BIGINT NOT NULL,
    -- whose node claims it; of its id, or where its setter can claim it at once
    part            TINYINT NOT NULL,
    fire_at         BIGINT NOT NULL,
    timer_key       VARCHAR(160) NOT NULL,
    input           MEDIUMBLOB NULL,
    max_attempts    INT NULL,
    timeout_ms      BIGINT NULL,
    start_within_ms BIGINT NULL,
    -- how many rows it has in timer_labels
    labels          TINYINT NULL,
    note            VARCHAR(1024) NULL,
    requested_by    VARCHAR(190) NULL,
    traceparent     VARCHAR(64) NULL,
    PRIMARY KEY (id),
    -- one pending timer per key; lists in the order of the keys
    UNIQUE KEY uq_timers_key (job_id, timer_key),
    -- claim, as of triggers
    KEY ix_timers_due (part, fire_at, tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Words to find timers by. When a timer is claimed or cancelled, its labels go
-- over to its run.
CREATE TABLE IF NOT EXISTS timer_labels (
    tenant_id BIGINT NOT NULL,
    job_id    BIGINT NOT NULL,
    label     VARCHAR(64) NOT NULL,
    -- of the timer, or of its run
    timer_id  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, job_id, label, timer_id),
    -- the labels of a timer
    KEY ix_timer_labels_timer (timer_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How many timers are pending: the sum over the slots of a job. A slot alone may be
-- negative. Writers that come together change different slots.
CREATE TABLE IF NOT EXISTS timer_counts (
    tenant_id BIGINT NOT NULL,
    job_id    BIGINT NOT NULL,
    slot      TINYINT NOT NULL,
    pending   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, job_id, slot)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How runs have ended, of a job, an executor or a tenant, in a minute, an hour or a
-- day (docs/adr/0085). Each run is in one row of each kind: old minutes become hours,
-- old hours days.
CREATE TABLE IF NOT EXISTS statistics (
    tenant_id   BIGINT NOT NULL,
    -- 1: the tenant; 2: an executor; 3: a job
    kind        TINYINT NOT NULL,
    -- 0 for the tenant
    subject_id  BIGINT NOT NULL,
    -- first millisecond of the minute, hour or day, in UTC
    at          BIGINT NOT NULL,
    -- 1: a minute; 2: an hour; 3: a day
    step        TINYINT NOT NULL,
    state       TINYINT NOT NULL,
    runs        BIGINT NOT NULL,
    -- how many started at their first attempt, and how late: sum, maximum, and how many
    -- by how much (domain.Spread)
    started     BIGINT NOT NULL,
    late_ms     BIGINT NOT NULL,
    max_late_ms BIGINT NOT NULL,
    late        BLOB NOT NULL,
    -- how many have run, and how long their last attempt took
    ran         BIGINT NOT NULL,
    ran_ms      BIGINT NOT NULL,
    max_ran_ms  BIGINT NOT NULL,
    took        BLOB NOT NULL,
    PRIMARY KEY (tenant_id, kind, subject_id, at, step, state),
    -- what becomes an hour, a day or nothing
    KEY ix_statistics_step (step, at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Ends of runs that are not in statistics yet: one row for each transaction that ends
-- runs. They go in the transaction that counts them there.
CREATE TABLE IF NOT EXISTS statistics_journal (
    id   BIGINT NOT NULL PRIMARY KEY,
    -- a list of ends, of any tenants (record.EncodeEnds)
    body BLOB NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Wishes to cancel many timers, by the beginning of their keys or by a label.
CREATE TABLE IF NOT EXISTS timer_cancellations (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    job_id      BIGINT NOT NULL,
    -- NULL: it goes by the label
    key_prefix  VARCHAR(160) NULL,
    label       VARCHAR(64) NULL,
    -- 1: pending timers are cancelled; 2: runs
    stage       TINYINT NOT NULL,
    -- where it is, in keys or ids
    after_key   VARCHAR(190) NOT NULL DEFAULT '',
    after_id    BIGINT NOT NULL DEFAULT 0,
    found       BIGINT NOT NULL DEFAULT 0,
    cancelled   BIGINT NOT NULL DEFAULT 0,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL DEFAULT 0,
    -- NULL for those that are done: they leave ix_timer_cancellations_wake
    wake_at     BIGINT NULL,
    PRIMARY KEY (id),
    -- which have to be driven on
    KEY ix_timer_cancellations_wake (wake_at),
    -- those that go with a tenant
    KEY ix_timer_cancellations_tenant (tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- For how long ended runs of a tenant (job_id 0) or a job are kept, where not for as
-- long as the server says (docs/adr/0087); 0 = not said here. Version 0: no rule, the
-- row only says what was deleted.
CREATE TABLE IF NOT EXISTS retention_rules (
    tenant_id  BIGINT NOT NULL,
    job_id     BIGINT NOT NULL,
    run_days   INT NOT NULL DEFAULT 0,
    log_days   INT NOT NULL DEFAULT 0,
    run_count  INT NOT NULL DEFAULT 0,
    version    BIGINT NOT NULL DEFAULT 0,
    changed_at BIGINT NOT NULL DEFAULT 0,
    changed_by VARCHAR(190) NOT NULL DEFAULT '',
    -- runs of fire times before it may be gone, and logs; carillon verify reads it
    runs_from  BIGINT NOT NULL DEFAULT 0,
    logs_from  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, job_id),
    -- those of a job
    KEY ix_retention_rules_job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Wishes to delete ended runs (carillon run purge).
CREATE TABLE IF NOT EXISTS run_purges (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    -- 0 = all of the tenant
    job_id      BIGINT NOT NULL,
    before_at   BIGINT NOT NULL,
    -- which jobs it is done with
    after_job   BIGINT NOT NULL DEFAULT 0,
    deleted     BIGINT NOT NULL DEFAULT 0,
    cancelled   TINYINT NOT NULL DEFAULT 0,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL DEFAULT 0,
    -- NULL for those that are done: they leave ix_run_purges_wake
    wake_at     BIGINT NULL,
    PRIMARY KEY (id),
    -- which have to be driven on
    KEY ix_run_purges_wake (wake_at),
    -- list of a tenant
    KEY ix_run_purges_tenant (tenant_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Attempts that were followed by another one.
CREATE TABLE IF NOT EXISTS attempts (
    execution_id BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    number       INT NOT NULL,
    instance_id  BIGINT NOT NULL,
    state        TINYINT NOT NULL,
    reason       VARCHAR(32) NOT NULL DEFAULT '',
    offered_at   BIGINT NOT NULL DEFAULT 0,
    granted_at   BIGINT NOT NULL DEFAULT 0,
    started_at   BIGINT NOT NULL DEFAULT 0,
    finished_at  BIGINT NOT NULL DEFAULT 0,
    output       MEDIUMBLOB NULL,
    error_kind   VARCHAR(64) NOT NULL DEFAULT '',
    error        MEDIUMTEXT NULL,
    stack        MEDIUMTEXT NULL,
    log_lines    BIGINT NOT NULL DEFAULT -1,
    PRIMARY KEY (execution_id, fence)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How far the newest attempt of a run is, as its handler says. One row per run
-- whose handler says anything.
CREATE TABLE IF NOT EXISTS execution_progress (
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    permille     INT NOT NULL,
    message      VARCHAR(1024) NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Results of named steps, which later attempts of the run find.
CREATE TABLE IF NOT EXISTS execution_steps (
    execution_id BIGINT NOT NULL,
    name         VARCHAR(128) NOT NULL,
    tenant_id    BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    output       MEDIUMBLOB NOT NULL,
    stored_at    BIGINT NOT NULL,
    PRIMARY KEY (execution_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Outbox of callbacks: runs that have ended and are to be followed by a
-- handler of their job. Written with the run's end, gone when the callback's
-- own run exists. success is 1 or 0: a lost run may still come to succeed.
CREATE TABLE IF NOT EXISTS callbacks (
    execution_id BIGINT NOT NULL,
    success      TINYINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (execution_id, success)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS backfills (
    id          BIGINT NOT NULL,
    tenant_id   BIGINT NOT NULL,
    job_id      BIGINT NOT NULL,
    revision    BIGINT NOT NULL,
    state       TINYINT NOT NULL,
    scope       VARCHAR(16) NOT NULL,
    from_at     BIGINT NOT NULL,
    to_at       BIGINT NOT NULL,
    -- fire times before this one are done with
    next_at     BIGINT NOT NULL,
    concurrency INT NOT NULL,
    planned     INT NOT NULL DEFAULT 0,
    created     INT NOT NULL DEFAULT 0,
    skipped     INT NOT NULL DEFAULT 0,
    succeeded   INT NOT NULL DEFAULT 0,
    failed      INT NOT NULL DEFAULT 0,
    -- ids of its runs that have not ended, separated by commas
    live        TEXT NOT NULL,
    note        VARCHAR(1024) NOT NULL DEFAULT '',
    message     VARCHAR(1024) NOT NULL DEFAULT '',
    -- NULL for ended ones: they leave ix_backfills_wake
    wake_at     BIGINT NULL,
    created_at  BIGINT NOT NULL,
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    -- the W3C trace context of the request (traceparent), which the traces of its
    -- runs link to; empty when nobody records it
    traceparent VARCHAR(64) NOT NULL DEFAULT '',
    finished_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- which have to be driven on
    KEY ix_backfills_wake (wake_at),
    -- newest of a tenant, and of a job
    KEY ix_backfills_tenant (tenant_id, id),
    KEY ix_backfills_job (tenant_id, job_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Who may run when ----

-- Times in which nothing, or nothing of a tenant or executor, starts (docs/adr/0077).
CREATE TABLE IF NOT EXISTS maintenance (
    id          BIGINT NOT NULL,
    -- 0 = of the whole cluster
    tenant_id   BIGINT NOT NULL,
    -- 0 = of the whole tenant
    executor_id BIGINT NOT NULL,
    mode        VARCHAR(16) NOT NULL,
    reason      VARCHAR(2048) NOT NULL DEFAULT '',
    created_by  VARCHAR(190) NOT NULL DEFAULT '',
    since       BIGINT NOT NULL,
    -- in the year 9999 while it is to be switched off by hand
    ends_at     BIGINT NOT NULL,
    ended_by    VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- which is on, for everybody who starts runs; retention
    KEY ix_maintenance_ends (ends_at),
    -- of a tenant, newest first
    KEY ix_maintenance_scope (tenant_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How many runs hold the job's slot, and how many wait in slot_waiters. Every
-- job has its row from the beginning; its lock is what keeps overlap out.
CREATE TABLE IF NOT EXISTS job_slots (
    job_id    BIGINT NOT NULL,
    tenant_id BIGINT NOT NULL,
    holders   INT NOT NULL DEFAULT 0,
    waiters   INT NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The queue of a job, in the order of the fire times. Changed only under the
-- lock of the job's slot row.
CREATE TABLE IF NOT EXISTS slot_waiters (
    job_id       BIGINT NOT NULL,
    fire_at      BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    PRIMARY KEY (job_id, fire_at, execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How many runs of a tenant (kind 1) or an executor (kind 2) may be on instances
-- at once. A subject without a row has no limit. The lock of the row is what
-- makes offers of its runs take turns. Capacity 0: the limit was taken away, and
-- the row goes with the last one that waits for it.
CREATE TABLE IF NOT EXISTS limits (
    subject_id BIGINT NOT NULL,
    kind       TINYINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    capacity   INT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (subject_id, kind),
    -- the limits of a tenant
    KEY ix_limits_tenant (tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Runs that were offered under a limit. Those of them that are on an instance
-- count; the others are forgotten at the next look (docs/adr/0009), so whatever
-- ends a run need not know of limits. Changed only under the lock of the limit.
CREATE TABLE IF NOT EXISTS limit_holders (
    subject_id   BIGINT NOT NULL,
    kind         TINYINT NOT NULL,
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    PRIMARY KEY (subject_id, kind, execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Runs that wait for room under a limit, in the order in which they get it.
-- Changed only under the lock of the limit's row.
CREATE TABLE IF NOT EXISTS limit_waiters (
    subject_id   BIGINT NOT NULL,
    kind         TINYINT NOT NULL,
    -- fire time, earlier by a second for each point of priority
    precedence   BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    PRIMARY KEY (subject_id, kind, precedence, execution_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Logs ----

-- Runs of log lines, compressed (docs/adr/0025). The key reads an attempt in line
-- order, and old executions of a tenant for retention (their ids grow with time).
CREATE TABLE IF NOT EXISTS log_chunks (
    tenant_id    BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    attempt      INT NOT NULL,
    first_line   BIGINT NOT NULL,
    last_line    BIGINT NOT NULL,
    line_count   INT NOT NULL,
    -- what is known of it without inflating it
    raw_bytes    INT NOT NULL DEFAULT 0,
    body_bytes   INT NOT NULL DEFAULT 0,
    first_at     BIGINT NOT NULL DEFAULT 0,
    last_at      BIGINT NOT NULL DEFAULT 0,
    levels       SMALLINT NOT NULL DEFAULT 0,
    format       SMALLINT NOT NULL DEFAULT 0,
    -- lines that were not kept, and why
    dropped      BIGINT NOT NULL DEFAULT 0,
    cut          SMALLINT NOT NULL DEFAULT 0,
    -- the attempt up to and with this chunk
    run_lines    BIGINT NOT NULL DEFAULT 0,
    run_bytes    BIGINT NOT NULL DEFAULT 0,
    -- search aid; NULL or empty: it does not help
    aid          BLOB NULL,
    body         MEDIUMBLOB NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, attempt, first_line)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What a tenant's logs took on a day (days since 1970, before compression),
-- and, with day 0, what of them is stored now (after compression).
CREATE TABLE IF NOT EXISTS log_usage (
    tenant_id  BIGINT NOT NULL,
    day        INT NOT NULL,
    line_count BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, day)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- Alerts ----

CREATE TABLE IF NOT EXISTS alert_events (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    kind         VARCHAR(32) NOT NULL,
    job_id       BIGINT NOT NULL DEFAULT 0,
    revision     BIGINT NOT NULL DEFAULT 0,
    execution_id BIGINT NOT NULL DEFAULT 0,
    -- what it says beside its kind, when it is not about a run
    detail       VARCHAR(1024) NOT NULL DEFAULT '',
    dedupe_key   VARCHAR(190) NOT NULL,
    created_at   BIGINT NOT NULL,
    -- one event for all runs of a job that never started in one outage: how many it
    -- stands for, and when it may be told, so that they can gather; 0 for all others
    missed       BIGINT NOT NULL DEFAULT 0,
    tell_at      BIGINT NOT NULL DEFAULT 0,
    -- when its deliveries were made; 0 = not yet
    expanded_at  BIGINT NOT NULL DEFAULT 0,
    -- the reason of the run's end
    reason       VARCHAR(32) NOT NULL DEFAULT '',
    -- the executor that it is about, where neither job nor run tells; 0 for the most
    executor_id  BIGINT NOT NULL DEFAULT 0,
    -- the rule that found it; 0 = none did
    rule_id      BIGINT NOT NULL DEFAULT 0,
    -- what it was counted in; an incident keeps the rows of a bounded number
    incident_id  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- one telling per event (promise P7)
    UNIQUE KEY uq_alert_events_dedupe (tenant_id, dedupe_key),
    -- events that no incident has counted yet, by when they may be told
    KEY ix_alert_events_tell (expanded_at, tell_at, id),
    -- an incident's
    KEY ix_alert_events_incident (incident_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS deliveries (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    event_id     BIGINT NOT NULL,
    -- 0 for those of no incident, such as a test
    incident_id  BIGINT NOT NULL DEFAULT 0,
    job_id       BIGINT NOT NULL DEFAULT 0,
    -- kind of the channel; channel_id is the tenant's alert channel, 0 = it is told
    -- by an address of the job or of the operators
    channel      VARCHAR(32) NOT NULL,
    channel_id   BIGINT NOT NULL DEFAULT 0,
    target       VARCHAR(2048) NOT NULL,
    state        TINYINT NOT NULL,
    attempts     INT NOT NULL DEFAULT 0,
    next_at      BIGINT NOT NULL,
    -- boot id of the node that is telling it, empty when nobody is: what a dead
    -- node had claimed is free when its lease has ended
    claimed_by   VARCHAR(64) NOT NULL DEFAULT '',
    last_error   VARCHAR(1024) NOT NULL DEFAULT '',
    created_at   BIGINT NOT NULL,
    delivered_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    -- pending ones whose time has come
    KEY ix_deliveries_due (state, next_at),
    -- delivery log of a tenant, newest first
    KEY ix_deliveries_tenant (tenant_id, id),
    -- delivery log of a job
    KEY ix_deliveries_job (tenant_id, job_id, id),
    -- of it in one state, such as what was given up
    KEY ix_deliveries_state (tenant_id, state, id),
    -- what nodes have claimed
    KEY ix_deliveries_claim (claimed_by),
    -- those of an incident that are pending
    KEY ix_deliveries_incident (incident_id, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What is told as one thing (docs/adr/0081): events of one kind of one job, of an
-- executor when many of its jobs are concerned, or of the platform. live_key names
-- it while events can still join it; then its id is appended.
CREATE TABLE IF NOT EXISTS alert_incidents (
    id           BIGINT NOT NULL,
    tenant_id    BIGINT NOT NULL,
    live_key     VARCHAR(190) NOT NULL,
    kind         VARCHAR(32) NOT NULL,
    -- of the rule that it was opened by; 0 = none
    rule_id      BIGINT NOT NULL DEFAULT 0,
    severity     VARCHAR(16) NOT NULL DEFAULT '',
    executor_id  BIGINT NOT NULL DEFAULT 0,
    -- 0 = it is about more than one job
    job_id       BIGINT NOT NULL DEFAULT 0,
    -- the one that it became a part of; 0 = none
    parent_id    BIGINT NOT NULL DEFAULT 0,
    -- 1 open, 2 acknowledged, 3 resolved
    state        TINYINT NOT NULL,
    opened_at    BIGINT NOT NULL,
    last_at      BIGINT NOT NULL,
    resolved_at  BIGINT NOT NULL DEFAULT 0,
    resolved_by  VARCHAR(190) NOT NULL DEFAULT '',
    acknowledged_at BIGINT NOT NULL DEFAULT 0,
    acknowledged_by VARCHAR(190) NOT NULL DEFAULT '',
    escalated_at BIGINT NOT NULL DEFAULT 0,
    -- how many events there were, how many of them have a row, and how often it was
    -- opened again
    events       BIGINT NOT NULL DEFAULT 0,
    kept         BIGINT NOT NULL DEFAULT 0,
    reopened     BIGINT NOT NULL DEFAULT 0,
    first_event_id BIGINT NOT NULL DEFAULT 0,
    last_event_id  BIGINT NOT NULL DEFAULT 0,
    -- the jobs concerned, as JSON; no more than domain.MaxIncidentJobs
    jobs         MEDIUMTEXT NULL,
    detail       VARCHAR(1024) NOT NULL DEFAULT '',
    -- messages: how many, when the last one was, and what it told
    told         BIGINT NOT NULL DEFAULT 0,
    told_at      BIGINT NOT NULL DEFAULT 0,
    told_events  BIGINT NOT NULL DEFAULT 0,
    told_state   TINYINT NOT NULL DEFAULT 0,
    told_event_id BIGINT NOT NULL DEFAULT 0,
    -- when it is to be looked at; NULL when events can join it no more
    wake_at      BIGINT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_alert_incidents_live (tenant_id, live_key),
    -- those whose time has come
    KEY ix_alert_incidents_wake (wake_at),
    -- a tenant's by state, newest first
    KEY ix_alert_incidents_state (tenant_id, state, id),
    -- an executor's, newest first
    KEY ix_alert_incidents_executor (tenant_id, executor_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What a tenant says about some of its alerts: which are told, to whom, how urgent
-- they are (docs/adr/0082). The first that matches decides.
CREATE TABLE IF NOT EXISTS alert_rules (
    id         BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    name       VARCHAR(128) NOT NULL,
    version    BIGINT NOT NULL,
    -- JSON
    spec       MEDIUMTEXT NOT NULL,
    -- when somebody looks next whether its condition holds; NULL: events say so
    next_at    BIGINT NULL,
    -- the job that was looked at last; 0: all were
    next_job   BIGINT NOT NULL DEFAULT 0,
    -- 1: it wants to hear of runs that have succeeded
    on_success TINYINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    updated_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    UNIQUE KEY uq_alert_rules_name (tenant_id, name),
    -- those whose time has come
    KEY ix_alert_rules_next (next_at),
    -- those that want successes, of all tenants
    KEY ix_alert_rules_success (on_success)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Times in which nothing is told of some of a tenant's alerts.
CREATE TABLE IF NOT EXISTS alert_silences (
    id         BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    -- JSON
    matcher    MEDIUMTEXT NOT NULL,
    reason     VARCHAR(1024) NOT NULL,
    starts_at  BIGINT NOT NULL,
    ends_at    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    ended_by   VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- those that are not over; retention
    KEY ix_alert_silences_end (tenant_id, ends_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What a tenant says about all of its alerts.
CREATE TABLE IF NOT EXISTS alert_settings (
    tenant_id  BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    -- JSON
    settings   MEDIUMTEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who is told of an incident.
CREATE TABLE IF NOT EXISTS alert_receivers (
    incident_id  BIGINT NOT NULL,
    -- of channel and target
    receiver_key CHAR(32) NOT NULL,
    channel      VARCHAR(32) NOT NULL,
    channel_id   BIGINT NOT NULL DEFAULT 0,
    target       VARCHAR(2048) NOT NULL DEFAULT '',
    -- whose settings name it
    job_id       BIGINT NOT NULL DEFAULT 0,
    told         TINYINT NOT NULL DEFAULT 0,
    PRIMARY KEY (incident_id, receiver_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Where alerts of a tenant go, and how they look there.
CREATE TABLE IF NOT EXISTS alert_channels (
    id         BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    name       VARCHAR(128) NOT NULL,
    kind       VARCHAR(32) NOT NULL,
    enabled    TINYINT NOT NULL,
    version    BIGINT NOT NULL,
    -- JSON, without secrets
    settings   MEDIUMTEXT NOT NULL,
    -- sealed; empty: none
    secrets    MEDIUMBLOB NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    updated_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one channel per name; list in name order
    UNIQUE KEY uq_alert_channels_name (tenant_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Where messages of a tenant go: brokers, and who asks there.
CREATE TABLE IF NOT EXISTS connections (
    id         BIGINT NOT NULL,
    tenant_id  BIGINT NOT NULL,
    name       VARCHAR(128) NOT NULL,
    version    BIGINT NOT NULL,
    -- JSON, without secrets
    spec       MEDIUMTEXT NOT NULL,
    -- sealed; empty: none
    secrets    MEDIUMBLOB NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by VARCHAR(190) NOT NULL DEFAULT '',
    updated_by VARCHAR(190) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    -- one connection per name; list in name order
    UNIQUE KEY uq_connections_name (tenant_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
