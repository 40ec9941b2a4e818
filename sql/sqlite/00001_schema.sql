-- +goose Up

-- ---- The cluster ----

-- What all nodes share: cluster id, fingerprint of the sealing key.
CREATE TABLE cluster_values (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row per node number that was ever used. A number is free again when its
-- heartbeat is old; at most 1023 rows, read as a whole.
CREATE TABLE nodes (
    id               INTEGER PRIMARY KEY,
    boot_id          TEXT NOT NULL,
    name             TEXT NOT NULL,
    executor_address TEXT NOT NULL,
    version          TEXT NOT NULL,
    started_at       INTEGER NOT NULL,
    heartbeat_at     INTEGER NOT NULL,
    sessions         INTEGER NOT NULL DEFAULT 0,
    gone_at          INTEGER NOT NULL DEFAULT 0,
    -- which rules of time zones it plans with
    zone_source      TEXT NOT NULL DEFAULT '',
    zone_version     TEXT NOT NULL DEFAULT '',
    -- of what the rules say, whatever their source calls them
    zone_digest      TEXT NOT NULL DEFAULT ''
);

-- What a node says of itself each time it renews.
CREATE TABLE node_states (
    node_id    INTEGER NOT NULL PRIMARY KEY,
    boot_id    TEXT NOT NULL,
    -- database clock; 0 = it is leaving and takes no partitions
    renewed_at INTEGER NOT NULL,
    -- milliseconds; positive = the node's clock is ahead of the database's
    skew       INTEGER NOT NULL,
    -- 1 while the node does not believe the database's clock
    held       INTEGER NOT NULL DEFAULT 0,
    -- how often a node has given its sign of life, in all its lives. The sum over
    -- all nodes only grows, so that a database which says less than it said before
    -- has lost commits (docs/adr/0019)
    beats      INTEGER NOT NULL DEFAULT 0
);

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

-- Public halves of the nodes' token-signing keys.
CREATE TABLE signing_keys (
    id         TEXT NOT NULL PRIMARY KEY,
    public_key BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

-- ---- Tenants and accounts ----

CREATE TABLE tenants (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    -- 1 = enabled, 2 = disabled, 3 = deleted, and its rows go after delete_at; 4 = on
    -- its way to or from another cell, 5 = it lives in another cell (docs/adr/0088)
    state      INTEGER NOT NULL DEFAULT 1,
    -- which other cell that is; delete_at is when what it has left behind goes
    cell       TEXT NOT NULL DEFAULT '',
    -- why it is disabled; of a tenant on its way here, the cell that this database leads
    -- to again when the move is given up
    note       TEXT NOT NULL DEFAULT '',
    version    INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    -- when its state changed; 0 = never
    changed_at INTEGER NOT NULL DEFAULT 0,
    delete_at  INTEGER NOT NULL DEFAULT 0
);
-- login and tenant switch by name
CREATE UNIQUE INDEX uq_tenants_name ON tenants (name);
-- those that take nothing, and those whose rows go
CREATE INDEX ix_tenants_state ON tenants (state, delete_at);

-- Other clusters of the installation, each with a database of its own, where tenants
-- can live (docs/adr/0088). People write it; there are few.
CREATE TABLE cells (
    name       TEXT PRIMARY KEY,
    -- of API and console
    url        TEXT NOT NULL,
    -- host:port of its executor ports, separated by commas
    executors  TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL
);

-- How much of a kind a tenant may have; without a row the default applies
-- (docs/adr/0052). The names of kinds are those of domain.QuotaKind.
CREATE TABLE quotas (
    tenant_id  INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    -- 0 = no limit
    capacity   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (tenant_id, kind)
);

CREATE TABLE users (
    id                   INTEGER PRIMARY KEY,
    username             TEXT NOT NULL,
    password_hash        TEXT NOT NULL,
    platform_admin       INTEGER NOT NULL DEFAULT 0,
    must_change_password INTEGER NOT NULL DEFAULT 0,
    disabled             INTEGER NOT NULL DEFAULT 0,
    session_version      INTEGER NOT NULL DEFAULT 0,
    created_at           INTEGER NOT NULL
);
-- login
CREATE UNIQUE INDEX uq_users_username ON users (username);

CREATE TABLE memberships (
    tenant_id INTEGER NOT NULL,
    user_id   INTEGER NOT NULL,
    role      TEXT NOT NULL,
    -- the members of a tenant
    PRIMARY KEY (tenant_id, user_id)
);
-- the tenants of a user, at login
CREATE INDEX ix_memberships_user ON memberships (user_id);

-- Accounts that a tenant wants as members, until their owners have answered.
CREATE TABLE invitations (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    username    TEXT NOT NULL,
    -- whose answer counts; 0: there was no such account, which the tenant is not told
    user_id     INTEGER NOT NULL,
    role        TEXT NOT NULL,
    invited_by  TEXT NOT NULL,
    inviter_id  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    -- a declined one looks to the tenant like one without an answer
    declined_at INTEGER NOT NULL DEFAULT 0
);
-- one for each name; those of a tenant
CREATE UNIQUE INDEX uq_invitations_name ON invitations (tenant_id, username);
-- those of an account
CREATE INDEX ix_invitations_user ON invitations (user_id);

CREATE TABLE refresh_tokens (
    hash            BLOB NOT NULL PRIMARY KEY,
    family          INTEGER NOT NULL,
    user_id         INTEGER NOT NULL,
    tenant_id       INTEGER NOT NULL,
    session_version INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    used_at         INTEGER NOT NULL DEFAULT 0,
    -- random number of the call that used it: a repeated commit is no reuse
    used_by         INTEGER NOT NULL DEFAULT 0,
    revoked_at      INTEGER NOT NULL DEFAULT 0
);
-- revoke a family
CREATE INDEX ix_refresh_tokens_family ON refresh_tokens (family);
-- retention: those that have expired, without reading the others
CREATE INDEX ix_refresh_tokens_expires ON refresh_tokens (expires_at);
-- those that go with a tenant
CREATE INDEX ix_refresh_tokens_tenant ON refresh_tokens (tenant_id);

CREATE TABLE api_keys (
    id             INTEGER PRIMARY KEY,
    tenant_id      INTEGER NOT NULL,
    -- the account that answers for the key; 0 = none
    owner_id       INTEGER NOT NULL DEFAULT 0,
    name           TEXT NOT NULL,
    prefix         TEXT NOT NULL,
    hash           BLOB NOT NULL,
    role           TEXT NOT NULL,
    -- what the key may call and set timers of, one name per line: executors with
    -- all their handlers, and "executor/handler"; both empty = all of its tenant
    call_executors TEXT NOT NULL DEFAULT '',
    call_handlers  TEXT NOT NULL DEFAULT '',
    created_by     TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL DEFAULT 0,
    last_used_at   INTEGER NOT NULL DEFAULT 0,
    revoked_at     INTEGER NOT NULL DEFAULT 0
);
-- every request with a key
CREATE UNIQUE INDEX uq_api_keys_hash ON api_keys (hash);
-- list of a tenant
CREATE INDEX ix_api_keys_tenant ON api_keys (tenant_id, id);

-- ---- Executors ----

CREATE TABLE executors (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    -- 1: the admin nodes are its instances (docs/adr/0070)
    built_in    INTEGER NOT NULL DEFAULT 0,
    -- 1 = enabled, 2 = disabled, 3 = deleted: jobs and runs may still name it
    state       INTEGER NOT NULL DEFAULT 1,
    -- why it is disabled
    note        TEXT NOT NULL DEFAULT '',
    version     INTEGER NOT NULL DEFAULT 1,
    created_at  INTEGER NOT NULL,
    -- when its state changed; 0 = never
    changed_at  INTEGER NOT NULL DEFAULT 0
);
-- registration by name; list of a tenant in name order
CREATE UNIQUE INDEX uq_executors_name ON executors (tenant_id, name) WHERE state <> 3;
-- what each node is an instance of
CREATE INDEX ix_executors_built_in ON executors (built_in);
-- those that take nothing; retention of deleted ones
CREATE INDEX ix_executors_state ON executors (state, changed_at);

-- Names that executors had before: processes and programs go on using them
-- (docs/adr/0079).
CREATE TABLE executor_aliases (
    tenant_id   INTEGER NOT NULL,
    name        TEXT NOT NULL,
    executor_id INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
-- those of an executor
CREATE INDEX ix_executor_aliases_executor ON executor_aliases (executor_id);

CREATE TABLE handlers (
    tenant_id     INTEGER NOT NULL,
    executor_id   INTEGER NOT NULL,
    name          TEXT NOT NULL,
    description   TEXT NOT NULL DEFAULT '',
    input_schema  BLOB NULL,
    output_schema BLOB NULL,
    idempotent    INTEGER NOT NULL DEFAULT 0,
    -- what its declaration says of its calls, as a document like that of a job's
    -- revision; NULL: nothing (docs/adr/0053)
    calls         TEXT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
);

-- What the builds of an executor's application have registered: a build is a
-- version with a set of handlers and declared jobs, named by its digest.
CREATE TABLE executor_builds (
    tenant_id     INTEGER NOT NULL,
    executor_id   INTEGER NOT NULL,
    digest        TEXT NOT NULL,
    app_version   TEXT NOT NULL DEFAULT '',
    -- as the application says; 0 = it does not
    generation    INTEGER NOT NULL DEFAULT 0,
    -- names, as JSON
    handlers      TEXT NOT NULL,
    -- the frame it registered with
    catalogue     BLOB NULL,
    -- it is one of those whose catalogues are in force
    applied       INTEGER NOT NULL DEFAULT 0,
    -- something in it could not be taken
    contested     INTEGER NOT NULL DEFAULT 0,
    -- 1: all its instances came with a join token that has no_jobs
    no_jobs       INTEGER NOT NULL DEFAULT 0,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, digest)
);
-- those in force whose instances may have left
CREATE INDEX ix_builds_applied ON executor_builds (applied, tenant_id, executor_id);

CREATE TABLE instances (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    executor_id  INTEGER NOT NULL,
    boot_id      TEXT NOT NULL,
    name         TEXT NOT NULL,
    host         TEXT NOT NULL DEFAULT '',
    pid          INTEGER NOT NULL DEFAULT 0,
    app_version  TEXT NOT NULL DEFAULT '',
    -- digest of its row in executor_builds
    build        TEXT NOT NULL DEFAULT '',
    client       TEXT NOT NULL DEFAULT '',
    labels       TEXT NULL,
    handlers     TEXT NULL,
    slots        INTEGER NOT NULL DEFAULT 0,
    running      INTEGER NOT NULL DEFAULT 0,
    draining     INTEGER NOT NULL DEFAULT 0,
    -- since when it takes nothing new; 0 while it does
    draining_at  INTEGER NOT NULL DEFAULT 0,
    -- 1 while it says that it takes nothing, because its journal cannot be written
    -- (Heartbeat.refusing)
    refusing     INTEGER NOT NULL DEFAULT 0,
    -- 1 while it keeps one session only, until it is wanted (docs/adr/0020)
    parked       INTEGER NOT NULL DEFAULT 0,
    wanted_at    INTEGER NOT NULL DEFAULT 0,
    started_at   INTEGER NOT NULL DEFAULT 0,
    connected_at INTEGER NOT NULL DEFAULT 0,
    last_seen_at INTEGER NOT NULL DEFAULT 0,
    lease_until  INTEGER NOT NULL DEFAULT 0,
    gone_at      INTEGER NOT NULL DEFAULT 0,
    gone_reason  TEXT NOT NULL DEFAULT '',
    -- since when somebody wants it to take nothing new; 0: nobody does
    drained_at   INTEGER NOT NULL DEFAULT 0,
    drained_by   TEXT NOT NULL DEFAULT ''
);
-- registration of a boot that another node knows already
CREATE UNIQUE INDEX uq_instances_boot ON instances (tenant_id, executor_id, boot_id);
-- list and count of an executor, living ones first
CREATE INDEX ix_instances_executor ON instances (tenant_id, executor_id, gone_at, id);
-- leases that ran out, of all tenants
CREATE INDEX ix_instances_lease ON instances (gone_at, lease_until);
-- who is to take nothing new
CREATE INDEX ix_instances_drained ON instances (drained_at);
-- who can be wanted
CREATE INDEX ix_instances_parked ON instances (parked, executor_id);
-- whether a build has an instance
CREATE INDEX ix_instances_build ON instances (tenant_id, executor_id, build, gone_at);

CREATE TABLE join_tokens (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,
    hash        BLOB NOT NULL,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL DEFAULT 0,
    max_uses    INTEGER NOT NULL DEFAULT 0,
    uses        INTEGER NOT NULL DEFAULT 0,
    revoked_at  INTEGER NOT NULL DEFAULT 0,
    -- 1: processes that register with the token may declare no jobs
    no_jobs     INTEGER NOT NULL DEFAULT 0
);
-- every registration
CREATE UNIQUE INDEX uq_join_tokens_hash ON join_tokens (hash);
-- list of an executor
CREATE INDEX ix_join_tokens_executor ON join_tokens (tenant_id, executor_id, id);

-- The boots a token has let in: a boot counts as one use, however often and to
-- however many nodes it connects.
CREATE TABLE join_token_boots (
    token_id  INTEGER NOT NULL,
    boot_id   TEXT NOT NULL,
    tenant_id INTEGER NOT NULL,
    used_at   INTEGER NOT NULL,
    PRIMARY KEY (token_id, boot_id)
);
-- retention, the oldest ones first
CREATE INDEX ix_join_token_boots_used ON join_token_boots (used_at);

-- The authorities that sign executors' certificates, for the whole cluster. The
-- newest one signs, all that are not over are believed. The key is sealed like
-- every secret; epoch keeps two nodes from making the next one both.
CREATE TABLE executor_authorities (
    id          INTEGER NOT NULL PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    certificate BLOB NOT NULL,
    sealed_key  BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
);
CREATE UNIQUE INDEX uq_executor_authorities_epoch ON executor_authorities (epoch);

-- Who may not connect, whatever it shows: a process by its boot id, or a
-- certificate by its serial number.
CREATE TABLE executor_denials (
    id          INTEGER NOT NULL PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    label       TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL
);
-- every hello, and the list of an executor
CREATE UNIQUE INDEX uq_executor_denials_subject ON executor_denials (tenant_id, executor_id, subject);
-- what is new, for the nodes that have to end sessions
CREATE INDEX ix_executor_denials_created ON executor_denials (created_at);

-- Who was turned away at the executors' port, by all nodes: a row counts all
-- that was refused to the same for the same reason. Strangers decide what is in
-- it, so the nodes bound how many rows they write and how many there are
-- (docs/adr/0034).
CREATE TABLE refusals (
    -- digest of code, remote, executor and instance
    subject  BLOB NOT NULL PRIMARY KEY,
    code     TEXT NOT NULL,
    message  TEXT NOT NULL,
    remote   TEXT NOT NULL,
    executor TEXT NOT NULL,
    instance TEXT NOT NULL,
    node     TEXT NOT NULL,
    times    INTEGER NOT NULL DEFAULT 0,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL
);
-- list, newest first; the bound and the retention, oldest first
CREATE INDEX ix_refusals_last ON refusals (last_at);

-- ---- Jobs ----

-- name, handler, description, labels and owner are copies out of the current
-- revision's spec, for lists and their filters.
CREATE TABLE jobs (
    id               INTEGER PRIMARY KEY,
    tenant_id        INTEGER NOT NULL,
    executor_id      INTEGER NOT NULL,
    part             INTEGER NOT NULL,
    state            INTEGER NOT NULL,
    -- 0: of people and code; 1: of the calls of a handler; 2: of its runs as a
    -- callback; 3: of its timers
    kind             INTEGER NOT NULL DEFAULT 0,
    name             TEXT NOT NULL,
    handler          TEXT NOT NULL,
    description      TEXT NOT NULL,
    -- "\nkey=value\n" per label
    labels           TEXT NOT NULL,
    owner            TEXT NOT NULL DEFAULT '',
    pause_note       TEXT NOT NULL DEFAULT '',
    -- the executor or tenant that was disabled and paused it; 0: somebody did, or
    -- nobody
    held_by          INTEGER NOT NULL DEFAULT 0,
    revision         INTEGER NOT NULL,
    -- the most that the schedule fires in a minute, by the newest revision
    fires_per_minute INTEGER NOT NULL,
    source           TEXT NOT NULL,
    -- whose code declares the job, and what it may do with it (docs/adr/0023)
    declared_by      INTEGER NOT NULL DEFAULT 0,
    -- the name in the code, whatever a person has renamed the job to
    declared_name    TEXT NOT NULL DEFAULT '',
    declaration_hash TEXT NOT NULL DEFAULT '',
    declared_build   TEXT NOT NULL DEFAULT '',
    declared_version TEXT NOT NULL DEFAULT '',
    ownership        TEXT NOT NULL DEFAULT '',
    removal          TEXT NOT NULL DEFAULT '',
    -- no build declares it any more: 1; and it was paused for that: 2
    undeclared       INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    created_by       TEXT NOT NULL DEFAULT '',
    updated_by       TEXT NOT NULL DEFAULT ''
);
-- one living job per name
CREATE UNIQUE INDEX uq_jobs_live_name ON jobs (tenant_id, name) WHERE state <> 3;
-- list in name order; search by part of the name
CREATE INDEX ix_jobs_name ON jobs (tenant_id, name, id);
-- list by last change
CREATE INDEX ix_jobs_updated ON jobs (tenant_id, updated_at, id);
-- those that an executor's code declares
CREATE INDEX ix_jobs_declared ON jobs (tenant_id, declared_by, declared_name);
-- retention: deleted ones, without reading the others
CREATE INDEX ix_jobs_deleted ON jobs (updated_at, id) WHERE state = 3;
-- what the schedules of a tenant may fire in a minute
CREATE INDEX ix_jobs_quota ON jobs (tenant_id, state, fires_per_minute);
-- how many a tenant has of a kind, by state
CREATE INDEX ix_jobs_kind ON jobs (tenant_id, kind, state);
-- those of an executor
CREATE INDEX ix_jobs_executor ON jobs (tenant_id, executor_id, state, kind);
-- those to resume
CREATE INDEX ix_jobs_held ON jobs (held_by, id);

CREATE TABLE job_revisions (
    job_id     INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    spec       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, revision)
);

-- What became of each job, and when: made, paused, resumed, deleted. Only
-- appended to, under the lock of the job's trigger; carillon verify reads it
-- to know which fire times had to run.
CREATE TABLE job_events (
    job_id     INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    -- as in jobs
    state      INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    -- why, in the words of who did it
    note       TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, number)
) WITHOUT ROWID;

-- The row that is claimed. Far in the future = nothing is planned.
CREATE TABLE triggers (
    job_id       INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    part         INTEGER NOT NULL,
    executor_id  INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    next_fire_at INTEGER NOT NULL,
    last_fire_at INTEGER NOT NULL DEFAULT 0
);
-- jobs in the order in which they fire next
CREATE INDEX ix_triggers_next ON triggers (tenant_id, next_fire_at, job_id);
-- claim: what is due in these partitions, and when is the next one; the tenant
-- is in it so that a claim leaves tenants out without reading their rows
-- (docs/adr/0017)
CREATE INDEX ix_triggers_due ON triggers (part, next_fire_at, tenant_id);

-- A trigger of a fixed delay that waits for the end of a run. There is no row
-- for any other trigger. Changed only under the lock of the trigger's row.
CREATE TABLE trigger_waits (
    job_id       INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    execution_id INTEGER NOT NULL
);

-- What code proposes for a job and nobody has decided, or has declined.
CREATE TABLE job_proposals (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    name        TEXT NOT NULL,
    -- 1 pending, 2 declined
    state       INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    build       TEXT NOT NULL DEFAULT '',
    app_version TEXT NOT NULL DEFAULT '',
    removal     TEXT NOT NULL DEFAULT '',
    spec        TEXT NOT NULL,
    proposed_at INTEGER NOT NULL,
    decided_at  INTEGER NOT NULL DEFAULT 0,
    decided_by  TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX uq_job_proposals_name ON job_proposals (tenant_id, executor_id, name);
-- pending ones of a tenant
CREATE INDEX ix_job_proposals_state ON job_proposals (tenant_id, state, id);

-- Jobs that the present builds of an executor declare and that were not taken,
-- each with why. They are replaced as a whole when builds are put into force.
CREATE TABLE refused_declarations (
    tenant_id   INTEGER NOT NULL,
    executor_id INTEGER NOT NULL,
    name        TEXT NOT NULL,
    code        TEXT NOT NULL,
    message     TEXT NOT NULL,
    app_version TEXT NOT NULL,
    refused_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, executor_id, name)
) WITHOUT ROWID;

CREATE TABLE calendars (
    id         INTEGER PRIMARY KEY,
    tenant_id  INTEGER NOT NULL,
    -- 1 = in use, 3 = deleted: old revisions of jobs still name it
    state      INTEGER NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    updated_by TEXT NOT NULL DEFAULT ''
);
-- one living calendar per name; list in name order
CREATE UNIQUE INDEX uq_calendars_live_name ON calendars (tenant_id, name) WHERE state <> 3;

-- Versions never change.
CREATE TABLE calendar_versions (
    calendar_id INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    tenant_id   INTEGER NOT NULL,
    spec        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (calendar_id, version)
);

-- Which version of a calendar the current revision of a job is planned with.
CREATE TABLE job_calendars (
    job_id      INTEGER NOT NULL,
    calendar_id INTEGER NOT NULL,
    tenant_id   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    PRIMARY KEY (job_id, calendar_id)
);
-- jobs that are behind a calendar; jobs of a calendar
CREATE INDEX ix_job_calendars_version ON job_calendars (calendar_id, version, job_id);

CREATE TABLE scripts (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    -- 1 = in use, 3 = deleted: runs of old job revisions may still name it
    state       INTEGER NOT NULL,
    name        TEXT NOT NULL,
    language    TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    -- the newest one
    revision    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL DEFAULT '',
    updated_by  TEXT NOT NULL DEFAULT ''
);
-- one living script per name; list in name order
CREATE UNIQUE INDEX uq_scripts_live_name ON scripts (tenant_id, name) WHERE state <> 3;

-- Revisions never change; they go with their script.
CREATE TABLE script_revisions (
    script_id  INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    content    TEXT NOT NULL,
    sha256     BLOB NOT NULL,
    -- Ed25519, by a key that is not in this database
    signature  BLOB NOT NULL,
    note       TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (script_id, revision)
);

-- Which script the current revision of a job runs; revision 0 = the newest.
CREATE TABLE job_scripts (
    job_id    INTEGER PRIMARY KEY,
    script_id INTEGER NOT NULL,
    tenant_id INTEGER NOT NULL,
    revision  INTEGER NOT NULL
);
-- jobs of a script
CREATE INDEX ix_job_scripts_script ON job_scripts (script_id, job_id);

-- What agents may do for a tenant: the row with the highest revision counts,
-- and without one nothing is allowed. Rows never change.
CREATE TABLE script_policies (
    tenant_id  INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    -- languages, separated by commas
    languages  TEXT NOT NULL,
    http       INTEGER NOT NULL,
    -- whom the admin nodes may call, separated by commas; empty: nobody
    callback_hosts      TEXT NOT NULL DEFAULT '',
    callback_timeout_ms INTEGER NOT NULL DEFAULT 0,
    callbacks_per_host  INTEGER NOT NULL DEFAULT 0,
    -- signs callbacks; sealed
    callback_secret     BLOB NULL,
    note       TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, revision)
);

-- ---- Runs ----

CREATE TABLE executions (
    id             INTEGER PRIMARY KEY,
    tenant_id      INTEGER NOT NULL,
    job_id         INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    executor_id    INTEGER NOT NULL,
    part           INTEGER NOT NULL,

    -- why there is the run
    cause          TEXT NOT NULL,
    fire_at        INTEGER NOT NULL,
    occurrence_key TEXT NOT NULL DEFAULT '',
    requested_by   TEXT NOT NULL DEFAULT '',
    -- the W3C trace context in which it was created (traceparent); empty when
    -- nobody records it
    traceparent    TEXT NOT NULL DEFAULT '',

    -- Families (docs/adr/0022). A part names its parent and what it is (role: 1 a
    -- shard, 2 and 3 the hooks before and after). Parts are found through
    -- uq_executions_occurrence: their keys begin with the parent's id. bound_id is
    -- the only instance that may take a broadcast's shard. stage says where a parent
    -- stands.
    parent_id      INTEGER NOT NULL DEFAULT 0,
    role           INTEGER NOT NULL DEFAULT 0,
    shard_index    INTEGER NOT NULL DEFAULT 0,
    shard_total    INTEGER NOT NULL DEFAULT 0,
    bound_id       INTEGER NOT NULL DEFAULT 0,
    stage          INTEGER NOT NULL DEFAULT 0,

    state          INTEGER NOT NULL,
    -- the state as coarse as lists need it: 0 = alive, 1 = alive and far ahead of
    -- its time, 2 = ended, but its handler still runs, otherwise the final state;
    -- 32 more for a timer's run and 64 for a part, so that lists and counts of runs
    -- pass over them. An index on the state itself would have to be rewritten at every step of every run
    phase          INTEGER NOT NULL DEFAULT 0,
    -- counts the writes of a row: a node that knows a row as it wrote it last moves
    -- it on with one guarded UPDATE and without reading it (docs/adr/0010)
    version        INTEGER NOT NULL DEFAULT 0,
    reason         TEXT NOT NULL DEFAULT '',
    -- when it is to be looked at; NULL for ended runs: they leave ix_executions_wake
    wake_at        INTEGER NULL,
    not_before     INTEGER NOT NULL DEFAULT 0,
    expire_at      INTEGER NOT NULL DEFAULT 0,
    -- copied from the job's revision, for whoever orders runs without reading it
    priority       INTEGER NOT NULL DEFAULT 0,
    holds_slot     INTEGER NOT NULL DEFAULT 0,
    -- 1: the run has ended, but its handler still runs, and the run keeps its slot.
    -- It has a wake_at then, through which the sweep finds it
    lingers        INTEGER NOT NULL DEFAULT 0,
    -- when a run that lingered was known to run no more
    returned_at    INTEGER NOT NULL DEFAULT 0,

    -- the newest attempt
    attempt        INTEGER NOT NULL DEFAULT 0,
    max_attempts   INTEGER NOT NULL DEFAULT 0,
    -- how many attempts were lost and followed by another one: the first few cost
    -- the run none of its attempts (docs/adr/0039)
    lost_attempts  INTEGER NOT NULL DEFAULT 0,
    fence          INTEGER NOT NULL DEFAULT 0,
    node_id        INTEGER NOT NULL DEFAULT 0,
    instance_id    INTEGER NOT NULL DEFAULT 0,
    -- what the choice of the instance left of the others: how many were looked at,
    -- and which of them had no room (docs/adr/0037); 0 until the run was offered
    passed         INTEGER NOT NULL DEFAULT 0,
    idempotent     INTEGER NOT NULL DEFAULT 0,
    -- what the caller of a run allows one attempt to take; 0 = what its job does
    timeout_ms     INTEGER NOT NULL DEFAULT 0,
    deadline       INTEGER NOT NULL DEFAULT 0,
    planned_at     INTEGER NOT NULL DEFAULT 0,
    offered_at     INTEGER NOT NULL DEFAULT 0,
    granted_at     INTEGER NOT NULL DEFAULT 0,
    started_at     INTEGER NOT NULL DEFAULT 0,
    finished_at    INTEGER NOT NULL DEFAULT 0,
    error_kind     TEXT NOT NULL DEFAULT '',
    log_lines      INTEGER NOT NULL DEFAULT -1,

    -- the shards that a parent repeats, as a JSON list
    picks          TEXT NULL,
    -- what kept the run from starting when it was due, as a JSON list; NULL for the
    -- most, which started in time
    delays         TEXT NULL,
    note           TEXT NOT NULL DEFAULT '',
    message        TEXT NOT NULL DEFAULT '',
    input          BLOB NULL,
    output         BLOB NULL,
    error          TEXT NULL,
    stack          TEXT NULL
);
-- no double (promise P2); the runs of a job, and its last one, by fire time
CREATE UNIQUE INDEX uq_executions_occurrence ON executions (job_id, fire_at, occurrence_key);
-- newest runs of an executor (and of an instance of it)
CREATE INDEX ix_executions_executor ON executions (tenant_id, executor_id, id);
-- sweep; living runs of a job, through its partition
CREATE INDEX ix_executions_wake ON executions (part, wake_at) WHERE wake_at IS NOT NULL;
-- newest runs of a tenant, one bounded scan per phase, merged; counts
CREATE INDEX ix_executions_phase ON executions (tenant_id, phase, id);

-- A run asked for with a key exists once per job, whatever its fire time.
CREATE TABLE request_keys (
    tenant_id    INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    request_key  TEXT NOT NULL,
    execution_id INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, job_id, request_key)
);

-- A timer that waits for its time (docs/adr/0069). There may be millions, so a row
-- has no more than it needs; what is rarely set is NULL. Shortly before its time it
-- is claimed: it becomes a run, and request_keys leads from its key to that.
CREATE TABLE timers (
    id              INTEGER PRIMARY KEY,
    tenant_id       INTEGER NOT NULL,
    job_id          INTEGER NOT NULL,
    -- whose node claims it; of its id, or where its setter can claim it at once
    part            INTEGER NOT NULL,
    fire_at         INTEGER NOT NULL,
    timer_key       TEXT NOT NULL,
    input           BLOB NULL,
    max_attempts    INTEGER NULL,
    timeout_ms      INTEGER NULL,
    start_within_ms INTEGER NULL,
    -- how many rows it has in timer_labels
    labels          INTEGER NULL,
    note            TEXT NULL,
    requested_by    TEXT NULL,
    traceparent     TEXT NULL
);
-- one pending timer per key; lists in the order of the keys
CREATE UNIQUE INDEX uq_timers_key ON timers (job_id, timer_key);
-- claim, as of triggers
CREATE INDEX ix_timers_due ON timers (part, fire_at, tenant_id);

-- Words to find timers by. When a timer is claimed or cancelled, its labels go
-- over to its run.
CREATE TABLE timer_labels (
    tenant_id INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    label     TEXT NOT NULL,
    -- of the timer, or of its run
    timer_id  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, job_id, label, timer_id)
) WITHOUT ROWID;
-- the labels of a timer
CREATE INDEX ix_timer_labels_timer ON timer_labels (timer_id);

-- How many timers are pending: the sum over the slots of a job. A slot alone may be
-- negative. Writers that come together change different slots.
CREATE TABLE timer_counts (
    tenant_id INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    pending   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, job_id, slot)
) WITHOUT ROWID;

-- How runs have ended, of a job, an executor or a tenant, in a minute, an hour or a
-- day (docs/adr/0085). Each run is in one row of each kind: old minutes become hours,
-- old hours days.
CREATE TABLE statistics (
    tenant_id   INTEGER NOT NULL,
    -- 1: the tenant; 2: an executor; 3: a job
    kind        INTEGER NOT NULL,
    -- 0 for the tenant
    subject_id  INTEGER NOT NULL,
    -- first millisecond of the minute, hour or day, in UTC
    at          INTEGER NOT NULL,
    -- 1: a minute; 2: an hour; 3: a day
    step        INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    runs        INTEGER NOT NULL,
    -- how many started at their first attempt, and how late: sum, maximum, and how many
    -- by how much (domain.Spread)
    started     INTEGER NOT NULL,
    late_ms     INTEGER NOT NULL,
    max_late_ms INTEGER NOT NULL,
    late        BLOB NOT NULL,
    -- how many have run, and how long their last attempt took
    ran         INTEGER NOT NULL,
    ran_ms      INTEGER NOT NULL,
    max_ran_ms  INTEGER NOT NULL,
    took        BLOB NOT NULL,
    PRIMARY KEY (tenant_id, kind, subject_id, at, step, state)
) WITHOUT ROWID;
-- what becomes an hour, a day or nothing
CREATE INDEX ix_statistics_step ON statistics (step, at);

-- Ends of runs that are not in statistics yet: one row for each transaction that ends
-- runs. They go in the transaction that counts them there.
CREATE TABLE statistics_journal (
    id   INTEGER PRIMARY KEY,
    -- a list of ends, of any tenants (record.EncodeEnds)
    body BLOB NOT NULL
);

-- Wishes to cancel many timers, by the beginning of their keys or by a label.
CREATE TABLE timer_cancellations (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    job_id      INTEGER NOT NULL,
    -- NULL: it goes by the label
    key_prefix  TEXT NULL,
    label       TEXT NULL,
    -- 1: pending timers are cancelled; 2: runs
    stage       INTEGER NOT NULL,
    -- where it is, in keys or ids
    after_key   TEXT NOT NULL DEFAULT '',
    after_id    INTEGER NOT NULL DEFAULT 0,
    found       INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    created_by  TEXT NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL DEFAULT 0,
    -- NULL for those that are done: they leave ix_timer_cancellations_wake
    wake_at     INTEGER NULL
);
-- which have to be driven on
CREATE INDEX ix_timer_cancellations_wake ON timer_cancellations (wake_at);
-- those that go with a tenant
CREATE INDEX ix_timer_cancellations_tenant ON timer_cancellations (tenant_id);

-- For how long ended runs of a tenant (job_id 0) or a job are kept, where not for as
-- long as the server says (docs/adr/0087); 0 = not said here. Version 0: no rule, the
-- row only says what was deleted.
CREATE TABLE retention_rules (
    tenant_id  INTEGER NOT NULL,
    job_id     INTEGER NOT NULL,
    run_days   INTEGER NOT NULL DEFAULT 0,
    log_days   INTEGER NOT NULL DEFAULT 0,
    run_count  INTEGER NOT NULL DEFAULT 0,
    version    INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER NOT NULL DEFAULT 0,
    changed_by TEXT NOT NULL DEFAULT '',
    -- runs of fire times before it may be gone, and logs; carillon verify reads it
    runs_from  INTEGER NOT NULL DEFAULT 0,
    logs_from  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, job_id)
) WITHOUT ROWID;
-- those of a job
CREATE INDEX ix_retention_rules_job ON retention_rules (job_id);

-- Wishes to delete ended runs (carillon run purge).
CREATE TABLE run_purges (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    -- 0 = all of the tenant
    job_id      INTEGER NOT NULL,
    before_at   INTEGER NOT NULL,
    -- which jobs it is done with
    after_job   INTEGER NOT NULL DEFAULT 0,
    deleted     INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    created_by  TEXT NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL DEFAULT 0,
    -- NULL for those that are done: they leave ix_run_purges_wake
    wake_at     INTEGER NULL
);
-- which have to be driven on
CREATE INDEX ix_run_purges_wake ON run_purges (wake_at);
-- list of a tenant
CREATE INDEX ix_run_purges_tenant ON run_purges (tenant_id, id);

-- Attempts that were followed by another one.
CREATE TABLE attempts (
    execution_id INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    instance_id  INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    reason       TEXT NOT NULL DEFAULT '',
    offered_at   INTEGER NOT NULL DEFAULT 0,
    granted_at   INTEGER NOT NULL DEFAULT 0,
    started_at   INTEGER NOT NULL DEFAULT 0,
    finished_at  INTEGER NOT NULL DEFAULT 0,
    output       BLOB NULL,
    error_kind   TEXT NOT NULL DEFAULT '',
    error        TEXT NULL,
    stack        TEXT NULL,
    log_lines    INTEGER NOT NULL DEFAULT -1,
    PRIMARY KEY (execution_id, fence)
);

-- How far the newest attempt of a run is, as its handler says. One row per run
-- whose handler says anything.
CREATE TABLE execution_progress (
    execution_id INTEGER NOT NULL PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    permille     INTEGER NOT NULL,
    message      TEXT NOT NULL,
    updated_at   INTEGER NOT NULL
);

-- Results of named steps, which later attempts of the run find.
CREATE TABLE execution_steps (
    execution_id INTEGER NOT NULL,
    name         TEXT NOT NULL,
    tenant_id    INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    output       BLOB NOT NULL,
    stored_at    INTEGER NOT NULL,
    PRIMARY KEY (execution_id, name)
);

-- Outbox of callbacks: runs that have ended and are to be followed by a
-- handler of their job. Written with the run's end, gone when the callback's
-- own run exists. success is 1 or 0: a lost run may still come to succeed.
CREATE TABLE callbacks (
    execution_id INTEGER NOT NULL,
    success      INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (execution_id, success)
);

CREATE TABLE backfills (
    id          INTEGER PRIMARY KEY,
    tenant_id   INTEGER NOT NULL,
    job_id      INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    scope       TEXT NOT NULL,
    from_at     INTEGER NOT NULL,
    to_at       INTEGER NOT NULL,
    -- fire times before this one are done with
    next_at     INTEGER NOT NULL,
    concurrency INTEGER NOT NULL,
    planned     INTEGER NOT NULL DEFAULT 0,
    created     INTEGER NOT NULL DEFAULT 0,
    skipped     INTEGER NOT NULL DEFAULT 0,
    succeeded   INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    -- ids of its runs that have not ended, separated by commas
    live        TEXT NOT NULL,
    note        TEXT NOT NULL DEFAULT '',
    message     TEXT NOT NULL DEFAULT '',
    -- NULL for ended ones: they leave ix_backfills_wake
    wake_at     INTEGER NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL DEFAULT '',
    -- the W3C trace context of the request (traceparent), which the traces of its
    -- runs link to; empty when nobody records it
    traceparent TEXT NOT NULL DEFAULT '',
    finished_at INTEGER NOT NULL DEFAULT 0
);
-- which have to be driven on
CREATE INDEX ix_backfills_wake ON backfills (wake_at);
-- newest of a tenant, and of a job
CREATE INDEX ix_backfills_tenant ON backfills (tenant_id, id);
CREATE INDEX ix_backfills_job ON backfills (tenant_id, job_id, id);

-- ---- Who may run when ----

-- Times in which nothing, or nothing of a tenant or executor, starts (docs/adr/0077).
CREATE TABLE maintenance (
    id          INTEGER PRIMARY KEY,
    -- 0 = of the whole cluster
    tenant_id   INTEGER NOT NULL,
    -- 0 = of the whole tenant
    executor_id INTEGER NOT NULL,
    mode        TEXT NOT NULL,
    reason      TEXT NOT NULL DEFAULT '',
    created_by  TEXT NOT NULL DEFAULT '',
    since       INTEGER NOT NULL,
    -- in the year 9999 while it is to be switched off by hand
    ends_at     INTEGER NOT NULL,
    ended_by    TEXT NOT NULL DEFAULT ''
);
-- which is on, for everybody who starts runs; retention
CREATE INDEX ix_maintenance_ends ON maintenance (ends_at);
-- of a tenant, newest first
CREATE INDEX ix_maintenance_scope ON maintenance (tenant_id, id);

-- How many runs hold the job's slot, and how many wait in slot_waiters. Every
-- job has its row from the beginning; its lock is what keeps overlap out.
CREATE TABLE job_slots (
    job_id    INTEGER PRIMARY KEY,
    tenant_id INTEGER NOT NULL,
    holders   INTEGER NOT NULL DEFAULT 0,
    waiters   INTEGER NOT NULL DEFAULT 0
);

-- The queue of a job, in the order of the fire times. Changed only under the
-- lock of the job's slot row.
CREATE TABLE slot_waiters (
    job_id       INTEGER NOT NULL,
    fire_at      INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    PRIMARY KEY (job_id, fire_at, execution_id)
);

-- How many runs of a tenant (kind 1) or an executor (kind 2) may be on instances
-- at once. A subject without a row has no limit. The lock of the row is what
-- makes offers of its runs take turns. Capacity 0: the limit was taken away, and
-- the row goes with the last one that waits for it.
CREATE TABLE limits (
    subject_id INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    tenant_id  INTEGER NOT NULL,
    capacity   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (subject_id, kind)
) WITHOUT ROWID;
-- the limits of a tenant
CREATE INDEX ix_limits_tenant ON limits (tenant_id);

-- Runs that were offered under a limit. Those of them that are on an instance
-- count; the others are forgotten at the next look (docs/adr/0009), so whatever
-- ends a run need not know of limits. Changed only under the lock of the limit.
CREATE TABLE limit_holders (
    subject_id   INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    PRIMARY KEY (subject_id, kind, execution_id)
) WITHOUT ROWID;

-- Runs that wait for room under a limit, in the order in which they get it.
-- Changed only under the lock of the limit's row.
CREATE TABLE limit_waiters (
    subject_id   INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    -- fire time, earlier by a second for each point of priority
    precedence   INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    tenant_id    INTEGER NOT NULL,
    PRIMARY KEY (subject_id, kind, precedence, execution_id)
) WITHOUT ROWID;

-- ---- Logs ----

-- Runs of log lines, compressed (docs/adr/0025). The key reads an attempt in line
-- order, and old executions of a tenant for retention (their ids grow with time).
CREATE TABLE log_chunks (
    tenant_id    INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    first_line   INTEGER NOT NULL,
    last_line    INTEGER NOT NULL,
    line_count   INTEGER NOT NULL,
    -- what is known of it without inflating it
    raw_bytes    INTEGER NOT NULL DEFAULT 0,
    body_bytes   INTEGER NOT NULL DEFAULT 0,
    first_at     INTEGER NOT NULL DEFAULT 0,
    last_at      INTEGER NOT NULL DEFAULT 0,
    levels       INTEGER NOT NULL DEFAULT 0,
    format       INTEGER NOT NULL DEFAULT 0,
    -- lines that were not kept, and why
    dropped      INTEGER NOT NULL DEFAULT 0,
    cut          INTEGER NOT NULL DEFAULT 0,
    -- the attempt up to and with this chunk
    run_lines    INTEGER NOT NULL DEFAULT 0,
    run_bytes    INTEGER NOT NULL DEFAULT 0,
    -- search aid; NULL or empty: it does not help
    aid          BLOB NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, attempt, first_line)
);

-- What a tenant's logs took on a day (days since 1970, before compression),
-- and, with day 0, what of them is stored now (after compression).
CREATE TABLE log_usage (
    tenant_id  INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    line_count INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, day)
);

-- ---- Alerts ----

CREATE TABLE alert_events (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    job_id       INTEGER NOT NULL DEFAULT 0,
    revision     INTEGER NOT NULL DEFAULT 0,
    execution_id INTEGER NOT NULL DEFAULT 0,
    -- what it says beside its kind, when it is not about a run
    detail       TEXT NOT NULL DEFAULT '',
    dedupe_key   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    -- one event for all runs of a job that never started in one outage: how many it
    -- stands for, and when it may be told, so that they can gather; 0 for all others
    missed       INTEGER NOT NULL DEFAULT 0,
    tell_at      INTEGER NOT NULL DEFAULT 0,
    -- when its deliveries were made; 0 = not yet
    expanded_at  INTEGER NOT NULL DEFAULT 0,
    -- the reason of the run's end
    reason       TEXT NOT NULL DEFAULT '',
    -- the executor that it is about, where neither job nor run tells; 0 for the most
    executor_id  INTEGER NOT NULL DEFAULT 0,
    -- the rule that found it; 0 = none did
    rule_id      INTEGER NOT NULL DEFAULT 0,
    -- what it was counted in; an incident keeps the rows of a bounded number
    incident_id  INTEGER NOT NULL DEFAULT 0
);
-- one telling per event (promise P7)
CREATE UNIQUE INDEX uq_alert_events_dedupe ON alert_events (tenant_id, dedupe_key);
-- events that no incident has counted yet, by when they may be told
CREATE INDEX ix_alert_events_tell ON alert_events (expanded_at, tell_at, id);
-- an incident's
CREATE INDEX ix_alert_events_incident ON alert_events (incident_id, id);

CREATE TABLE deliveries (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    event_id     INTEGER NOT NULL,
    -- 0 for those of no incident, such as a test
    incident_id  INTEGER NOT NULL DEFAULT 0,
    job_id       INTEGER NOT NULL DEFAULT 0,
    -- kind of the channel; channel_id is the tenant's alert channel, 0 = it is told
    -- by an address of the job or of the operators
    channel      TEXT NOT NULL,
    channel_id   INTEGER NOT NULL DEFAULT 0,
    target       TEXT NOT NULL,
    state        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER NOT NULL,
    -- boot id of the node that is telling it, empty when nobody is: what a dead
    -- node had claimed is free when its lease has ended
    claimed_by   TEXT NOT NULL DEFAULT '',
    last_error   TEXT NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER NOT NULL DEFAULT 0
);
-- pending ones whose time has come
CREATE INDEX ix_deliveries_due ON deliveries (state, next_at);
-- delivery log of a tenant, newest first
CREATE INDEX ix_deliveries_tenant ON deliveries (tenant_id, id);
-- delivery log of a job
CREATE INDEX ix_deliveries_job ON deliveries (tenant_id, job_id, id);
-- of it in one state, such as what was given up
CREATE INDEX ix_deliveries_state ON deliveries (tenant_id, state, id);
-- what nodes have claimed
CREATE INDEX ix_deliveries_claim ON deliveries (claimed_by);
-- those of an incident that are pending
CREATE INDEX ix_deliveries_incident ON deliveries (incident_id, state);

-- What is told as one thing (docs/adr/0081): events of one kind of one job, of an
-- executor when many of its jobs are concerned, or of the platform. live_key names
-- it while events can still join it; then its id is appended.
CREATE TABLE alert_incidents (
    id           INTEGER PRIMARY KEY,
    tenant_id    INTEGER NOT NULL,
    live_key     TEXT NOT NULL,
    kind         TEXT NOT NULL,
    -- of the rule that it was opened by; 0 = none
    rule_id      INTEGER NOT NULL DEFAULT 0,
    severity     TEXT NOT NULL DEFAULT '',
    executor_id  INTEGER NOT NULL DEFAULT 0,
    -- 0 = it is about more than one job
    job_id       INTEGER NOT NULL DEFAULT 0,
    -- the one that it became a part of; 0 = none
    parent_id    INTEGER NOT NULL DEFAULT 0,
    -- 1 open, 2 acknowledged, 3 resolved
    state        INTEGER NOT NULL,
    opened_at    INTEGER NOT NULL,
    last_at      INTEGER NOT NULL,
    resolved_at  INTEGER NOT NULL DEFAULT 0,
    resolved_by  TEXT NOT NULL DEFAULT '',
    acknowledged_at INTEGER NOT NULL DEFAULT 0,
    acknowledged_by TEXT NOT NULL DEFAULT '',
    escalated_at INTEGER NOT NULL DEFAULT 0,
    -- how many events there were, how many of them have a row, and how often it was
    -- opened again
    events       INTEGER NOT NULL DEFAULT 0,
    kept         INTEGER NOT NULL DEFAULT 0,
    reopened     INTEGER NOT NULL DEFAULT 0,
    first_event_id INTEGER NOT NULL DEFAULT 0,
    last_event_id  INTEGER NOT NULL DEFAULT 0,
    -- the jobs concerned, as JSON; no more than domain.MaxIncidentJobs
    jobs         TEXT NULL,
    detail       TEXT NOT NULL DEFAULT '',
    -- messages: how many, when the last one was, and what it told
    told         INTEGER NOT NULL DEFAULT 0,
    told_at      INTEGER NOT NULL DEFAULT 0,
    told_events  INTEGER NOT NULL DEFAULT 0,
    told_state   INTEGER NOT NULL DEFAULT 0,
    told_event_id INTEGER NOT NULL DEFAULT 0,
    -- when it is to be looked at; NULL when events can join it no more
    wake_at      INTEGER NULL
);
CREATE UNIQUE INDEX uq_alert_incidents_live ON alert_incidents (tenant_id, live_key);
-- those whose time has come
CREATE INDEX ix_alert_incidents_wake ON alert_incidents (wake_at);
-- a tenant's by state, newest first
CREATE INDEX ix_alert_incidents_state ON alert_incidents (tenant_id, state, id);
-- an executor's, newest first
CREATE INDEX ix_alert_incidents_executor ON alert_incidents (tenant_id, executor_id, id);

-- What a tenant says about some of its alerts: which are told, to whom, how urgent
-- they are (docs/adr/0082). The first that matches decides.
CREATE TABLE alert_rules (
    id         INTEGER PRIMARY KEY,
    tenant_id  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    -- JSON
    spec       TEXT NOT NULL,
    -- when somebody looks next whether its condition holds; NULL: events say so
    next_at    INTEGER NULL,
    -- the job that was looked at last; 0: all were
    next_job   INTEGER NOT NULL DEFAULT 0,
    -- 1: it wants to hear of runs that have succeeded
    on_success INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    updated_by TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX uq_alert_rules_name ON alert_rules (tenant_id, name);
-- those whose time has come
CREATE INDEX ix_alert_rules_next ON alert_rules (next_at);
-- those that want successes, of all tenants
CREATE INDEX ix_alert_rules_success ON alert_rules (on_success);

-- Times in which nothing is told of some of a tenant's alerts.
CREATE TABLE alert_silences (
    id         INTEGER PRIMARY KEY,
    tenant_id  INTEGER NOT NULL,
    -- JSON
    matcher    TEXT NOT NULL,
    reason     TEXT NOT NULL,
    starts_at  INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    ended_by   TEXT NOT NULL DEFAULT ''
);
-- those that are not over; retention
CREATE INDEX ix_alert_silences_end ON alert_silences (tenant_id, ends_at);

-- What a tenant says about all of its alerts.
CREATE TABLE alert_settings (
    tenant_id  INTEGER PRIMARY KEY,
    version    INTEGER NOT NULL,
    -- JSON
    settings   TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL DEFAULT ''
);

-- Who is told of an incident.
CREATE TABLE alert_receivers (
    incident_id  INTEGER NOT NULL,
    -- of channel and target
    receiver_key TEXT NOT NULL,
    channel      TEXT NOT NULL,
    channel_id   INTEGER NOT NULL DEFAULT 0,
    target       TEXT NOT NULL DEFAULT '',
    -- whose settings name it
    job_id       INTEGER NOT NULL DEFAULT 0,
    told         INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (incident_id, receiver_key)
) WITHOUT ROWID;

-- Where alerts of a tenant go, and how they look there.
CREATE TABLE alert_channels (
    id         INTEGER PRIMARY KEY,
    tenant_id  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    enabled    INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    -- JSON, without secrets
    settings   TEXT NOT NULL,
    -- sealed; empty: none
    secrets    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    updated_by TEXT NOT NULL DEFAULT ''
);
-- one channel per name; list in name order
CREATE UNIQUE INDEX uq_alert_channels_name ON alert_channels (tenant_id, name);

-- Where messages of a tenant go: brokers, and who asks there.
CREATE TABLE connections (
    id         INTEGER PRIMARY KEY,
    tenant_id  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    -- JSON, without secrets
    spec       TEXT NOT NULL,
    -- sealed; empty: none
    secrets    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    created_by TEXT NOT NULL DEFAULT '',
    updated_by TEXT NOT NULL DEFAULT ''
);
-- one connection per name; list in name order
CREATE UNIQUE INDEX uq_connections_name ON connections (tenant_id, name);
