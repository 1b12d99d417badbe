-- One row per task, updated in place: SQLite keeps no dead row versions, so moving rows between
-- tables would only cost. All instants are integer microseconds since 1970 UTC.
--
-- A partial index is visited by every UPDATE that names a column of its WHERE clause. The hot
-- updates (ready -> running -> done) name `place` and `state`, so only the three indexes they really
-- move in ask for `place`. The others stand on columns of their own (`due_at`, `expiry`, `holds`,
-- `waits_for`, `live_key`, `dead_end`), which a plain task leaves NULL from cradle to grave.
-- Measured: 100 instead of 69 thousand claims and saves a second.

-- Interned (queue, required capabilities, priority). Rows are never changed or removed, so a
-- process may remember them for ever.
CREATE TABLE lane (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    requires TEXT NOT NULL, -- JSON array, sorted
    priority TEXT NOT NULL,
    UNIQUE (queue, requires, priority)
) STRICT;

CREATE TABLE task (
    -- Rows are found by this number, not by the id: short in every index. A number may be used again
    -- once its task is forgotten, so it never leaves a transaction.
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    lane INTEGER NOT NULL,
    place INTEGER NOT NULL, -- 0 waiting, 1 ready, 2 blocked, 3 running, 4 done
    state TEXT NOT NULL,
    rank INTEGER NOT NULL,
    name TEXT NOT NULL,
    payload BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    timeout TEXT, -- seconds; text, because a REAL loses digits on its way through JSON
    retry TEXT,
    expires_at INTEGER,
    unique_key TEXT,
    idempotency_key TEXT,
    lock_key TEXT,
    tags TEXT, -- JSON array
    owner TEXT,
    trace TEXT,
    parent_id TEXT,
    -- What `place` makes of the columns above; NULL in every other place.
    due_at INTEGER,    -- waiting: run_at
    expiry INTEGER,    -- waiting, ready, blocked: expires_at
    holds TEXT,        -- ready, running: lock_key
    waits_for TEXT,    -- blocked: lock_key
    live_key TEXT,     -- not done: unique_key
    dead_end TEXT,     -- done, not completed: state
    -- The current or last attempt. `ended` is NULL while it runs, and again once it was copied to
    -- `attempt` because the task goes on.
    attempt INTEGER NOT NULL DEFAULT 0,
    cause TEXT NOT NULL DEFAULT 'submitted',
    worker_id TEXT,
    fence INTEGER,
    started_at INTEGER,
    ended TEXT,
    ended_charged INTEGER NOT NULL DEFAULT 0,
    -- What became of it.
    charged INTEGER NOT NULL DEFAULT 0,
    crash_count INTEGER NOT NULL DEFAULT 0,
    finished_at INTEGER,
    result BLOB,
    error TEXT, -- JSON
    reason TEXT,
    progress TEXT, -- JSON
    cost_units REAL NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER -- 1 or NULL
) STRICT;

CREATE INDEX task_ready ON task (lane, rank, id) WHERE place = 1;
CREATE INDEX task_running ON task (worker_id) WHERE place = 3;
CREATE INDEX task_finished ON task (dead_end, finished_at) WHERE place = 4;
CREATE INDEX task_waiting ON task (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_expiring ON task (expiry) WHERE expiry IS NOT NULL;
CREATE INDEX task_blocked ON task (waits_for, rank, id) WHERE waits_for IS NOT NULL;
CREATE INDEX task_dead_end ON task (dead_end, id) WHERE dead_end IS NOT NULL;
-- Exclusivity is the database's business, whatever the code above it does.
CREATE UNIQUE INDEX task_lock_holder ON task (holds) WHERE holds IS NOT NULL;
CREATE UNIQUE INDEX task_unique_key ON task (name, live_key) WHERE live_key IS NOT NULL;

-- Attempts that ended while their task went on. A plain success never gets here.
CREATE TABLE attempt (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cause TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    ended TEXT NOT NULL,
    charged INTEGER NOT NULL,
    error TEXT, -- JSON
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

-- What happened beside the attempts. `submitted` has no row: it is the task's created_at.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    attempt INTEGER,
    worker_id TEXT,
    detail TEXT
) STRICT;

CREATE INDEX event_task ON event (task, seq);

CREATE TABLE idempotency (
    key TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL,
    fingerprint TEXT,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_expiry ON idempotency (expires_at);

CREATE TABLE worker (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    queues TEXT, -- JSON array; NULL: every queue
    capabilities TEXT NOT NULL, -- JSON array
    capacity INTEGER NOT NULL,
    load INTEGER NOT NULL,
    status TEXT NOT NULL,
    beats INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT;

CREATE TABLE paused_queue (
    queue TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Numbers kept on write, so that nobody counts a backlog.
--   ready, waiting, blocked   key: lane
--   state:<state>             how many tasks are in it (terminal states and `retrying`)
--   ended:<state>             key: the second in which they ended
--   refused, fence            key: 0
CREATE TABLE tally (
    kind TEXT NOT NULL,
    key INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
