-- +goose Up

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

-- The executors whose handlers the key may call, as a JSON list of names;
-- empty = all of its tenant.
ALTER TABLE api_keys ADD COLUMN call_executors TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN call_executors;
DROP TABLE callbacks;
DROP TABLE execution_steps;
DROP TABLE execution_progress;
