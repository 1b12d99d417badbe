-- One table per state. The wide row is written once, to `task`; a transition moves one narrow row:
--
--     waiting -> ready -> run -> done          (blocked, beside ready, while another has the lock)
--
-- Every task is in exactly one of these five. A plain task touches task, ready, run and done, and
-- no secondary index; the moves are functions (the files after this one), one call and one commit
-- each. All instants are microseconds since 1970 UTC by this server's clock. `tasks` is the view for
-- people.
--
-- `flags` travels with a task through the narrow tables and tells in O(1) what else it has:
--     1 a lock key   2 a unique key   4 a row in `extra`   8 an expiry

CREATE TYPE holdfast.state AS ENUM (
    'queued', 'running', 'retrying', 'blocked', 'completed', 'failed', 'cancelled', 'dead_letter'
);

-- Interned (queue, required capabilities, priority). Rows are never changed or removed, so a process
-- may remember them for ever.
CREATE TABLE holdfast.lane (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    requires text[] NOT NULL, -- sorted
    priority text NOT NULL,
    UNIQUE (queue, requires, priority)
);

-- What was asked. Never updated. Partitioned by the day in the id, a UUIDv7; ids that lie elsewhere
-- (clocks may be wrong) are in the default partition.
CREATE TABLE holdfast.task (
    id uuid NOT NULL PRIMARY KEY,
    rank bigint NOT NULL,
    created_at bigint NOT NULL,
    run_at bigint NOT NULL,
    lane integer NOT NULL,
    max_retries bigint NOT NULL,
    timeout double precision, -- seconds
    expires_at bigint,
    parent_id text,
    name text NOT NULL,
    payload bytea NOT NULL, -- JSON
    retry text,
    unique_key text,
    idempotency_key text,
    lock_key text,
    owner text,
    trace text,
    tags text[]
) PARTITION BY RANGE (id);

CREATE TABLE holdfast.task_other PARTITION OF holdfast.task DEFAULT;

-- The tables that tasks pass through fill up and empty all the time, so they are not made smaller by
-- vacuum (`vacuum_truncate`): that locks everybody out while it looks for the last row.

-- May start now. `late` rows came in below the floor of their lane: see `floor`.
CREATE TABLE holdfast.ready (
    id uuid NOT NULL,
    rank bigint NOT NULL,
    lane integer NOT NULL,
    attempt integer NOT NULL, -- how many there were
    flags smallint NOT NULL,
    late boolean NOT NULL,
    expires_at bigint,
    PRIMARY KEY (lane, late, rank, id)
) WITH (
    vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 200000
);

-- A lane's order is by rank, which within a lane grows with time: new rows come in at the end, and
-- what is taken leaves dead row versions at the front. While an old snapshot (a backup, a forgotten
-- transaction) keeps them from being removed, every claim would walk over all of them. So a claim
-- begins at `active`, below which no row is left and none can come: rows with a smaller rank are
-- inserted as `late`, a line of its own. `moves.sql` says how the floor rises without a race.
CREATE TABLE holdfast.floor (
    lane integer NOT NULL PRIMARY KEY,
    active bigint NOT NULL,  -- claims begin here
    pending bigint NOT NULL, -- whoever inserts goes by this one
    seen_by xid8,            -- transactions from this number on have seen `pending`
    moved_at timestamptz NOT NULL
) WITH (fillfactor = 20);

-- Is running. `attempt` and `worker` are the fence.
CREATE TABLE holdfast.run (
    id uuid NOT NULL PRIMARY KEY,
    started_at bigint NOT NULL,
    lane integer NOT NULL,
    attempt integer NOT NULL,
    worker integer NOT NULL,
    flags smallint NOT NULL,
    fence bigint
) WITH (
    vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 200000
);

-- Has a run_at in the future, or had one that nobody has looked at since.
CREATE TABLE holdfast.waiting (
    id uuid NOT NULL PRIMARY KEY,
    rank bigint NOT NULL,
    due_at bigint NOT NULL,
    lane integer NOT NULL,
    attempt integer NOT NULL,
    flags smallint NOT NULL,
    retrying boolean NOT NULL,
    expires_at bigint
) WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

CREATE INDEX waiting_due ON holdfast.waiting (lane, due_at);

-- Is eligible, but another task has its lock.
CREATE TABLE holdfast.blocked (
    lock_key text NOT NULL,
    rank bigint NOT NULL,
    id uuid NOT NULL,
    lane integer NOT NULL,
    attempt integer NOT NULL,
    flags smallint NOT NULL,
    expires_at bigint,
    PRIMARY KEY (lock_key, rank, id)
) WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Has ended. Never updated; partitioned like `task`.
CREATE TABLE holdfast.done (
    id uuid NOT NULL PRIMARY KEY,
    finished_at bigint NOT NULL,
    started_at bigint, -- of the last attempt, as are `worker` and `fence`
    state holdfast.state NOT NULL,
    attempt integer NOT NULL,
    worker integer,
    flags smallint NOT NULL,
    charged boolean, -- whether the last attempt was
    fence bigint,
    ended text, -- how the last attempt did; NULL if the task was not running
    reason text,
    error text, -- JSON array: type, message, traceback, retriable
    result bytea
) PARTITION BY RANGE (id);

CREATE TABLE holdfast.done_other PARTITION OF holdfast.done DEFAULT;

CREATE INDEX done_dead_end ON holdfast.done (state, id) WHERE state <> 'completed';
-- For the pruner. Rows come in by the time they finished, so that a summary per range is enough.
CREATE INDEX done_finished ON holdfast.done USING brin (finished_at)
WITH (pages_per_range = 32, autosummarize = on);

-- What only some tasks have: an earlier attempt, progress, costs, a cancel request, a new rank. NULL
-- means "as in `task`", or that there is none.
CREATE TABLE holdfast.extra (
    id uuid NOT NULL PRIMARY KEY,
    rank bigint,
    run_at bigint,
    has_no_expiry boolean NOT NULL DEFAULT false,
    charged integer NOT NULL DEFAULT 0,
    crash_count integer NOT NULL DEFAULT 0,
    cause text NOT NULL DEFAULT 'submitted',
    started_at bigint,
    worker integer,
    fence bigint,
    error text,
    reason text,
    result bytea,
    progress text, -- JSON array: done, total, message
    cost_units double precision NOT NULL DEFAULT 0,
    tokens_in bigint NOT NULL DEFAULT 0,
    tokens_out bigint NOT NULL DEFAULT 0,
    cancel_requested boolean NOT NULL DEFAULT false
) WITH (fillfactor = 80);

-- Attempts that ended while their task went on.
CREATE TABLE holdfast.attempt (
    id uuid NOT NULL, -- of the task
    number integer NOT NULL,
    cause text NOT NULL,
    worker integer NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    ended text NOT NULL,
    charged boolean NOT NULL,
    error text,
    PRIMARY KEY (id, number)
);

-- What happened beside the attempts. `submitted` has no row: it is the task's created_at.
CREATE TABLE holdfast.event (
    id uuid NOT NULL, -- of the task
    seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    at bigint NOT NULL,
    kind text NOT NULL,
    attempt integer,
    worker_id text,
    detail text,
    PRIMARY KEY (id, seq)
);

-- Which running tasks their worker should stop.
CREATE TABLE holdfast.stop (
    worker integer NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (worker, id)
);

-- When tasks that are not running expire.
CREATE TABLE holdfast.expiring (
    expires_at bigint NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (expires_at, id)
);

-- Lock keys that somebody holds. `holder` is ready (in this lane, at this rank) or running. Whoever
-- changes anything about a key has its row locked.
CREATE TABLE holdfast.lock (
    key text NOT NULL PRIMARY KEY,
    holder uuid, -- NULL only inside a transaction
    lane integer,
    rank bigint
) WITH (fillfactor = 50);

CREATE SEQUENCE holdfast.fence;

-- The unique keys of unfinished tasks.
CREATE TABLE holdfast.unique_key (
    name text NOT NULL,
    key text NOT NULL,
    id uuid, -- NULL only inside a transaction
    PRIMARY KEY (name, key)
) WITH (fillfactor = 80);

CREATE TABLE holdfast.idempotency (
    key text NOT NULL PRIMARY KEY,
    id uuid, -- NULL only inside a transaction
    fingerprint text,
    expires_at bigint NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX idempotency_expiry ON holdfast.idempotency (expires_at);

-- Rows tell by their number who did what, so they stay: a worker long gone is `forgotten`.
CREATE TABLE holdfast.worker (
    number integer NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    id text NOT NULL PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    queues text[], -- NULL: every queue
    capabilities text[] NOT NULL,
    capacity integer NOT NULL,
    load integer NOT NULL,
    status text NOT NULL,
    beats bigint NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    forgotten boolean NOT NULL DEFAULT false,
    -- Nothing in `run` is this worker's, and nothing can be: its rescue is over.
    settled_up boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE INDEX worker_to_rescue ON holdfast.worker (number)
WHERE status NOT IN ('active', 'draining') AND NOT settled_up;

CREATE TABLE holdfast.paused_queue (
    queue text NOT NULL PRIMARY KEY
);

-- Numbers, so that nobody counts a backlog: rows to be summed up, appended by every change and
-- folded now and then. There is no counter row that all would wait for.
--   ready, waiting, blocked, running            key: lane
--   retrying, refused                           key: 0
--   completed, failed, cancelled, dead_letter   key: the second in which they ended, 0 if long ago
CREATE TABLE holdfast.tally (
    kind text NOT NULL,
    key bigint NOT NULL,
    n bigint NOT NULL
) WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Processes that sleep until somebody calls: NOTIFY is for them only, and only while there are any.
-- One row per process and queue; queue '' is every queue. A process that died leaves its rows
-- behind until `awake_at` is past. Unlogged: going to sleep must not wait for a disk, and after a
-- crash of the server every process registers anew.
CREATE UNLOGGED TABLE holdfast.sleeper (
    process text NOT NULL,
    queue text NOT NULL,
    awake_at timestamptz NOT NULL,
    PRIMARY KEY (queue, process)
);

CREATE TABLE holdfast.migration (
    version integer NOT NULL PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
