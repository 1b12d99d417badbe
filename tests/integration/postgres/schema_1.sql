-- The schema of version 1, as it was first installed. Never edited.

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

-- Time, numbers and small things that the functions after these share.

-- Now in microseconds. Tests bring their own; nobody else does.
CREATE FUNCTION holdfast.now_us(given bigint DEFAULT NULL) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) $$;

CREATE FUNCTION holdfast.as_time(us bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT timestamptz 'epoch' + us * interval '1 microsecond' $$;

-- The smallest UUIDv7 of an instant.
CREATE FUNCTION holdfast.first_id(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT
AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- A fresh UUIDv7, for tasks that are submitted in SQL.
CREATE FUNCTION holdfast.new_id() RETURNS uuid
LANGUAGE sql VOLATILE
AS $$
    SELECT (
        lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(made, 14, 3) || substr(made, 17)
    )::uuid
    FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS made) AS random
$$;

-- The lane of that kind, made if there is none.
CREATE FUNCTION holdfast.lane_of(queue text, requires text[], priority text) RETURNS integer
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    sorted text[] := ARRAY(SELECT DISTINCT word FROM unnest(lane_of.requires) AS word ORDER BY word);
    found integer;
BEGIN
    LOOP
        SELECT id INTO found FROM holdfast.lane
        WHERE queue = lane_of.queue AND requires = sorted AND priority = lane_of.priority;
        EXIT WHEN found IS NOT NULL;
        INSERT INTO holdfast.lane (queue, requires, priority)
        VALUES (lane_of.queue, sorted, lane_of.priority)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found;
END $$;

-- Sum up what was counted, so that there are few rows to read. Whoever comes second lets it be.
CREATE FUNCTION holdfast.fold_tally(now bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    long_ago bigint := holdfast.now_us(fold_tally.now) / 1000000 - 120;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('holdfast'), 2) THEN
        RETURN;
    END IF;
    WITH counted AS (
        DELETE FROM holdfast.tally RETURNING kind, key, n
    ), settled AS (
        SELECT
            kind, n,
            CASE
                WHEN kind IN ('completed', 'failed', 'cancelled', 'dead_letter') AND key < long_ago
                THEN 0 ELSE key
            END AS key
        FROM counted
    )
    INSERT INTO holdfast.tally (kind, key, n)
    SELECT kind, key, sum(n) FROM settled GROUP BY kind, key HAVING sum(n) <> 0;
END $$;

-- Seconds as microseconds, rounded to the nearest; more than all of time is cut.
CREATE FUNCTION holdfast.as_us(seconds double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT round(greatest(-6e16, least(seconds * 1000000, 2.5e17)))::bigint $$;

-- An array, or NULL if there is nothing in it but NULLs.
CREATE FUNCTION holdfast.or_null(words text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN array_remove(words, NULL) <> '{}' THEN words END $$;

-- What a priority is worth in line with the default aging (`core.priority`).
CREATE FUNCTION holdfast.head_start(priority text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
AS $$
    SELECT CASE priority
        WHEN 'critical' THEN 3153600000000000 WHEN 'high' THEN 1800000000
        WHEN 'normal' THEN 600000000 ELSE 0
    END
$$;

-- Bytes for people: as text if they are any.
CREATE FUNCTION holdfast.as_text(bytes bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT
AS $$
BEGIN
    RETURN convert_from(bytes, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN encode(bytes, 'base64');
END $$;

-- Who sleeps, and how to wake them.
--
--     sleep(process text, queues text[], seconds double precision) -> void
--         Register: this process is about to sleep; queues NULL means every queue. Repeat to
--         prolong; the queues of the last call count. Commit, claim once more, then sleep.
--     awake(process text) -> void
--         Deregister.
--     wake(queues text[]) -> integer
--         NOTIFY channel 'holdfast' once per queue that somebody sleeps for, with the queue's name
--         as the payload; says how many. Does nothing at all if nobody sleeps.
--
-- The channel has the name of the schema.

CREATE FUNCTION holdfast.sleep(process text, queues text[], seconds double precision) RETURNS void
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    wanted text[] := coalesce(sleep.queues, ARRAY['']);
BEGIN
    DELETE FROM holdfast.sleeper WHERE process = sleep.process AND queue <> ALL (wanted);
    DELETE FROM holdfast.sleeper WHERE awake_at < clock_timestamp() - interval '1 minute';
    INSERT INTO holdfast.sleeper (process, queue, awake_at)
    SELECT sleep.process, name, clock_timestamp() + sleep.seconds * interval '1 second'
    FROM unnest(wanted) AS name
    ON CONFLICT (queue, process) DO UPDATE SET awake_at = excluded.awake_at;
END $$;

CREATE FUNCTION holdfast.awake(process text) RETURNS void
LANGUAGE sql
AS $$ DELETE FROM holdfast.sleeper WHERE sleeper.process = awake.process $$;

CREATE FUNCTION holdfast.wake(queues text[]) RETURNS integer
LANGUAGE sql
AS $$
    SELECT count(pg_notify('holdfast', name))::integer
    FROM (SELECT DISTINCT unnest(wake.queues)) AS called (name)
    WHERE EXISTS (
        SELECT 1 FROM holdfast.sleeper
        WHERE queue IN (name, '') AND awake_at > clock_timestamp()
    )
$$;

-- Locks per resource key, and how tasks stand in line.
--
-- Of all eligible tasks with one key the *holder* is ready or running, the rest are blocked. Whoever
-- changes anything about a key first calls `hold_locks`, which locks the key's row until commit,
-- keys in order; then moves tasks (a task that becomes eligible is simply blocked, a holder that
-- leaves sets `holder` to NULL); then calls `settle_locks`, which restores the one rule.
--
-- No deadlocks, because everybody locks rows in this order: run, idempotency, unique_key, lock,
-- then ready, waiting and blocked. Claims lock rows of `ready` too, but wait for nobody.

CREATE FUNCTION holdfast.hold_locks(keys text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.lock AS l (key)
    SELECT DISTINCT wanted FROM unnest(keys) AS wanted WHERE wanted IS NOT NULL ORDER BY wanted
    -- An update, not nothing: it locks the row, so that a waiter cannot come while the last one goes.
    ON CONFLICT (key) DO UPDATE SET holder = l.holder;
END $$;

-- Put a task in line. Rows are `late` if they come in below the floor of their lane.
CREATE FUNCTION holdfast.line_up(
    wanted uuid, rank bigint, lane integer, attempt integer, flags smallint, expires_at bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
    VALUES (
        wanted, line_up.rank, line_up.lane, line_up.attempt, line_up.flags,
        current_setting('transaction_isolation') <> 'read committed' OR coalesce(
            line_up.rank < (SELECT f.pending FROM holdfast.floor AS f WHERE f.lane = line_up.lane),
            false
        ),
        line_up.expires_at
    );
END $$;

-- Give each of these keys to whom it belongs: if nobody holds it, or the holder has not started and
-- stands behind the first that is blocked, then to that one. The first case is the usual one, when
-- tasks come and when they end, and is done for all keys at once.
CREATE FUNCTION holdfast.settle_locks(keys text[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    all_late boolean := current_setting('transaction_isolation') <> 'read committed';
    held holdfast.lock;
BEGIN
    WITH free AS (
        SELECT l.key, first.*
        FROM (SELECT DISTINCT wanted FROM unnest(keys) AS wanted) AS k
        JOIN holdfast.lock AS l ON l.key = k.wanted AND l.holder IS NULL
        LEFT JOIN LATERAL (
            SELECT b.id, b.rank, b.lane, b.attempt, b.flags, b.expires_at
            FROM holdfast.blocked AS b WHERE b.lock_key = l.key ORDER BY b.rank, b.id LIMIT 1
        ) AS first ON true
    ), left_behind AS (
        DELETE FROM holdfast.lock AS l USING free WHERE l.key = free.key AND free.id IS NULL
    ), given AS (
        UPDATE holdfast.lock AS l SET holder = free.id, lane = free.lane, rank = free.rank
        FROM free WHERE l.key = free.key AND free.id IS NOT NULL
    ), moved AS (
        DELETE FROM holdfast.blocked AS b USING free
        WHERE b.lock_key = free.key AND b.rank = free.rank AND b.id = free.id
    ), lined_up AS (
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
        SELECT
            free.id, free.rank, free.lane, free.attempt, free.flags,
            all_late OR free.rank < coalesce(floor.pending, free.rank), free.expires_at
        FROM free LEFT JOIN holdfast.floor ON floor.lane = free.lane
        WHERE free.id IS NOT NULL
    )
    INSERT INTO holdfast.tally (kind, key, n)
    SELECT kind, free.lane, sign * count(*)
    FROM free CROSS JOIN (VALUES ('blocked', -1), ('ready', 1)) AS change (kind, sign)
    WHERE free.id IS NOT NULL GROUP BY kind, sign, free.lane;

    FOR held IN
        SELECT l.*
        FROM (SELECT DISTINCT wanted FROM unnest(keys) AS wanted) AS k
        JOIN holdfast.lock AS l ON l.key = k.wanted
        CROSS JOIN LATERAL (
            SELECT b.rank, b.id FROM holdfast.blocked AS b
            WHERE b.lock_key = l.key ORDER BY b.rank, b.id LIMIT 1
        ) AS first
        WHERE (first.rank, first.id) < (l.rank, l.holder)
        ORDER BY l.key
    LOOP
        PERFORM holdfast.change_places(held);
    END LOOP;
END $$;

-- Let the first that is blocked have the key of a holder that stands behind it, unless that has
-- started.
CREATE FUNCTION holdfast.change_places(held holdfast.lock) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    first holdfast.blocked;
    back holdfast.ready;
BEGIN
    DELETE FROM holdfast.ready AS r
    WHERE r.lane = held.lane AND r.late IN (false, true) AND r.rank = held.rank
    AND r.id = held.holder
    RETURNING * INTO back;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO first FROM holdfast.blocked AS b WHERE b.lock_key = held.key
    ORDER BY b.rank, b.id LIMIT 1;
    DELETE FROM holdfast.blocked AS b
    WHERE b.lock_key = held.key AND b.rank = first.rank AND b.id = first.id;
    INSERT INTO holdfast.blocked (lock_key, rank, id, lane, attempt, flags, expires_at)
    VALUES (held.key, back.rank, back.id, back.lane, back.attempt, back.flags, back.expires_at);
    PERFORM holdfast.line_up(
        first.id, first.rank, first.lane, first.attempt, first.flags, first.expires_at
    );
    UPDATE holdfast.lock AS l SET holder = first.id, lane = first.lane, rank = first.rank
    WHERE l.key = held.key;
    INSERT INTO holdfast.tally VALUES
        ('ready', back.lane, -1), ('blocked', back.lane, 1),
        ('blocked', first.lane, -1), ('ready', first.lane, 1);
END $$;

-- How a task shows: by the place it is in.
CREATE FUNCTION holdfast.state_of(id uuid) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN coalesce(
        (SELECT done.state::text FROM holdfast.done WHERE done.id = state_of.id),
        (SELECT 'running' FROM holdfast.run WHERE run.id = state_of.id),
        (
            SELECT CASE WHEN waiting.retrying THEN 'retrying' ELSE 'queued' END
            FROM holdfast.waiting WHERE waiting.id = state_of.id
        ),
        (
            SELECT 'blocked'
            FROM holdfast.task JOIN holdfast.lock ON lock.key = task.lock_key
            WHERE task.id = state_of.id AND lock.holder <> state_of.id
        ),
        'queued'
    );
END $$;

-- Which submits are new work and which repeat some.

-- Take the unique and idempotency keys of a batch; answers which positions repeat a task, which one,
-- and by which key. First the keys' rows are made, in order, or found (`held_by`). If all are new, and
-- no key and no id comes twice, that is it. Otherwise the batch is walked in its own order, and what
-- turns out not to be needed is removed.
CREATE FUNCTION holdfast.take_keys(
    ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[],
    until bigint, at bigint,
    OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    wanted bigint := coalesce(cardinality(array_remove(idempotency_keys, NULL)), 0)
        + coalesce(cardinality(array_remove(unique_keys, NULL)), 0);
    made bigint;
    held_by jsonb;
BEGIN
    repeats := '{}';
    WITH locked AS (
        INSERT INTO holdfast.idempotency AS i (key, expires_at)
        SELECT DISTINCT k, 0 FROM unnest(idempotency_keys) AS k WHERE k IS NOT NULL ORDER BY k
        ON CONFLICT (key) DO UPDATE SET expires_at = i.expires_at
        RETURNING i.id
    )
    SELECT count(*) FILTER (WHERE locked.id IS NULL) INTO made FROM locked;
    held_by := holdfast.hold_new_unique_keys(names, unique_keys);
    made := made + (SELECT count(*) FROM jsonb_each(held_by) AS h WHERE h.value = 'null');

    IF made < wanted
    OR EXISTS (SELECT 1 FROM holdfast.task WHERE task.id = ANY (ids))
    OR cardinality(ids) > (SELECT count(DISTINCT i) FROM unnest(ids) AS i)
    THEN
        SELECT * INTO repeats, firsts, outcomes FROM holdfast.take_keys_one_by_one(
            ids, names, unique_keys, idempotency_keys, fingerprints, held_by, until, at
        );
        RETURN;
    END IF;
    UPDATE holdfast.idempotency AS s
    SET id = given.id, fingerprint = given.fingerprint, expires_at = until
    FROM unnest(ids, idempotency_keys, fingerprints) AS given (id, key, fingerprint)
    WHERE s.key = given.key;
    UPDATE holdfast.unique_key AS u SET id = given.id
    FROM unnest(ids, names, unique_keys) AS given (id, name, key)
    WHERE u.name = given.name AND u.key = given.key;
END $$;

-- Make the rows of unique keys that nobody has; answers for each (a JSON array of name and key, as
-- text) who has it, null if it is new. Rows that are there are looked at and not locked: this may be
-- in somebody's long transaction, and the task that has the key must be able to end meanwhile.
CREATE FUNCTION holdfast.hold_new_unique_keys(names text[], unique_keys text[]) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    held_by jsonb := '{}';
    found jsonb;
BEGIN
    LOOP
        WITH missing AS (
            SELECT DISTINCT g.name, g.key
            FROM unnest(names, unique_keys) AS g (name, key)
            WHERE g.key IS NOT NULL AND NOT held_by ? jsonb_build_array(g.name, g.key)::text
        ), made AS (
            INSERT INTO holdfast.unique_key (name, key)
            SELECT m.name, m.key FROM missing AS m ORDER BY m.name, m.key
            ON CONFLICT (name, key) DO NOTHING
            RETURNING name, key
        )
        SELECT jsonb_object_agg(jsonb_build_array(made.name, made.key)::text, NULL::text)
        INTO found FROM made;
        held_by := held_by || coalesce(found, '{}');

        SELECT jsonb_object_agg(jsonb_build_array(u.name, u.key)::text, u.id)
        INTO found
        FROM unnest(names, unique_keys) AS g (name, key)
        JOIN holdfast.unique_key AS u ON u.name = g.name AND u.key = g.key
        WHERE u.id IS NOT NULL AND NOT held_by ? jsonb_build_array(g.name, g.key)::text;
        held_by := held_by || coalesce(found, '{}');
        -- A key that was neither made nor found was let go in between: once more.
        EXIT WHEN (
            SELECT count(DISTINCT (g.name, g.key)) FROM unnest(names, unique_keys) AS g (name, key)
            WHERE g.key IS NOT NULL
        ) = (SELECT count(*) FROM jsonb_object_keys(held_by));
    END LOOP;
    RETURN held_by;
END $$;

CREATE FUNCTION holdfast.take_keys_one_by_one(
    ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[],
    held_by jsonb, until bigint, at bigint,
    OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    given record;
    seen holdfast.idempotency;
    first uuid;
    outcome text;
    fresh jsonb := '{}'; -- the ids of this batch so far
BEGIN
    repeats := '{}';
    FOR given IN
        SELECT g.*, jsonb_build_array(g.name, g.unique_key)::text AS name_and_key
        FROM unnest(ids, names, unique_keys, idempotency_keys, fingerprints)
        WITH ORDINALITY AS g (id, name, unique_key, idempotency_key, fingerprint, n)
        ORDER BY g.n
    LOOP
        CONTINUE WHEN fresh ? given.id::text;
        CONTINUE WHEN EXISTS (SELECT 1 FROM holdfast.task WHERE task.id = given.id);
        first := NULL;
        IF given.idempotency_key IS NOT NULL THEN
            SELECT * INTO seen FROM holdfast.idempotency AS s WHERE s.key = given.idempotency_key;
            IF seen.id IS NOT NULL AND seen.expires_at > at THEN
                IF seen.fingerprint IS DISTINCT FROM given.fingerprint THEN
                    RAISE EXCEPTION 'idempotency key % came with another body', seen.key
                    USING ERRCODE = 'HF002', DETAIL = seen.key, HINT = seen.id::text;
                END IF;
                first := seen.id;
                outcome := 'idempotency_key';
            END IF;
        END IF;
        IF first IS NULL AND given.unique_key IS NOT NULL THEN
            first := (held_by ->> given.name_and_key)::uuid;
            outcome := 'unique_key';
        END IF;
        IF first IS NOT NULL THEN
            repeats := repeats || given.n::integer;
            firsts := firsts || first;
            outcomes := outcomes || outcome;
            CONTINUE;
        END IF;
        fresh := fresh || jsonb_build_object(given.id, true);
        UPDATE holdfast.idempotency AS s
        SET id = given.id, fingerprint = given.fingerprint, expires_at = until
        WHERE s.key = given.idempotency_key;
        IF given.unique_key IS NOT NULL THEN
            held_by := held_by || jsonb_build_object(given.name_and_key, given.id);
            UPDATE holdfast.unique_key AS u SET id = given.id
            WHERE u.name = given.name AND u.key = given.unique_key;
        END IF;
    END LOOP;

    DELETE FROM holdfast.idempotency AS s WHERE s.key = ANY (idempotency_keys) AND s.id IS NULL;
    DELETE FROM holdfast.unique_key AS u
    USING unnest(names, unique_keys) AS g (n, k)
    WHERE u.name = g.n AND u.key = g.k AND u.id IS NULL;
END $$;

-- Lock the rows of the unique keys that these tasks have, in order.
CREATE FUNCTION holdfast.hold_unique_keys(ids uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    PERFORM 1
    FROM holdfast.task JOIN holdfast.unique_key AS u
    ON u.name = task.name AND u.key = task.unique_key
    WHERE task.id = ANY (ids) AND task.unique_key IS NOT NULL AND u.id = task.id
    ORDER BY u.name, u.key FOR UPDATE OF u;
END $$;

-- New tasks.
--
--     add(tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL)
--         -> TABLE (position integer, task_id text, outcome text, state text)
--         For any driver, in the caller's transaction or its own. `tasks` is a JSON array of objects
--         with the fields of `NewTask` (id, name, payload, queue, priority, head_start, delay,
--         run_at, expires_in, expires_at, max_retries, timeout, retry, unique_key, idempotency_key,
--         fingerprint, lock, requires, tags, owner, trace, parent_id). `id`, `name` and `payload`
--         must be there; the payload is a *string* of JSON, kept to the letter; durations are
--         seconds; run_at and expires_at are whole microseconds since 1970 UTC. Answers one row per
--         task, in order: outcome is created, unique_key or idempotency_key. Raises HF002
--         (IdempotencyConflict): nothing of the batch is kept; the error's DETAIL is the key, its
--         HINT the id of the task that has it.
--     submit(name text, payload jsonb DEFAULT '{}', queue => 'default', priority => 'normal',
--         run_at timestamptz => NULL, delay interval => NULL, expires_at timestamptz => NULL,
--         max_retries integer => NULL, timeout interval => NULL, unique_key text => NULL,
--         idempotency_key text => NULL, lock text => NULL, requires text[] => '{}',
--         tags text[] => '{}', owner text => NULL, head_start interval => NULL) -> uuid
--         One task, from any language; wakes a worker when the transaction commits. The worker
--         validates. Returns the id of the task, or of the one that has its key already.
--     add_rows(…arrays…)
--         What both come to. For the store itself: its arguments may change with any release.

-- All arrays have one element per task; NULL for a whole array means NULL for every task. Durations
-- are microseconds. Answers only for tasks that are not simply new and queued. `locks_later`: tasks
-- with locks wait, though they are due, and stand in line for their lock at the next claim. For
-- transactions of others, which may take long: the row of a lock must not be locked meanwhile.
CREATE FUNCTION holdfast.add_rows(
    ids text[], names text[], payloads bytea[], lanes integer[], head_starts bigint[],
    max_retries bigint[], timeouts double precision[], delays bigint[], run_ats bigint[],
    expires_in bigint[], expires_at bigint[], retries text[], unique_keys text[],
    idempotency_keys text[], fingerprints text[], locks text[], owners text[], traces text[],
    parents text[], tags text[], idempotency_window bigint, now bigint DEFAULT NULL,
    locks_later boolean DEFAULT false
) RETURNS TABLE (n integer, task_id text, outcome text, state text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET lock_timeout = '10s' -- somebody's open transaction has one of the keys
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(add_rows.now);
    -- Who has read the floor before this had a number might insert below it unseen: see `floor`.
    all_late boolean := pg_current_xact_id() IS NULL
        OR current_setting('transaction_isolation') <> 'read committed';
    repeats integer[] := '{}'; -- positions, and the task that each of them repeats
    firsts uuid[];
    outcomes text[];
    written bigint;
BEGIN
    IF unique_keys IS NOT NULL OR idempotency_keys IS NOT NULL THEN
        SELECT * INTO repeats, firsts, outcomes FROM holdfast.take_keys(
            ids::uuid[], names, unique_keys, idempotency_keys, fingerprints,
            at + idempotency_window, at
        );
    END IF;
    IF locks IS NOT NULL AND NOT locks_later THEN
        PERFORM holdfast.hold_locks(locks);
    END IF;
    WITH given AS (
        SELECT
            g.*,
            coalesce(g.run_at, at + coalesce(g.delay, 0)) AS due_at,
            coalesce(g.expires_at, at + g.expires_in) AS expiry
        FROM unnest(
            ids::uuid[], names, payloads, lanes, head_starts, add_rows.max_retries, timeouts,
            delays, run_ats, add_rows.expires_in, add_rows.expires_at, retries, unique_keys,
            idempotency_keys, locks, owners, traces, parents, add_rows.tags
        ) WITH ORDINALITY AS g (
            id, name, payload, lane, head_start, max_retries, timeout, delay, run_at, expires_in,
            expires_at, retry, unique_key, idempotency_key, lock_key, owner, trace, parent_id, tags,
            n
        )
        WHERE g.n <> ALL (repeats)
    ), added AS (
        INSERT INTO holdfast.task (
            id, rank, created_at, run_at, lane, max_retries, timeout, expires_at, parent_id, name,
            payload, retry, unique_key, idempotency_key, lock_key, owner, trace, tags
        )
        SELECT
            id, due_at - head_start, at, due_at, lane, max_retries, timeout, expiry, parent_id,
            name, payload, retry, unique_key, idempotency_key, lock_key, owner, trace,
            CASE WHEN tags IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(tags::json)) END
        FROM given
        ON CONFLICT (id) DO NOTHING
        RETURNING
            id, rank, lane, run_at, lock_key, expires_at,
            ((lock_key IS NOT NULL)::integer + (unique_key IS NOT NULL)::integer * 2
            + (expires_at IS NOT NULL)::integer * 8)::smallint AS flags
    ), lined_up AS (
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
        SELECT
            id, rank, added.lane, 0, flags, all_late OR rank < coalesce(pending, rank), expires_at
        FROM added LEFT JOIN holdfast.floor ON floor.lane = added.lane
        WHERE run_at <= at AND lock_key IS NULL
    ), put_off AS (
        INSERT INTO holdfast.waiting (id, rank, due_at, lane, attempt, flags, retrying, expires_at)
        SELECT id, rank, run_at, lane, 0, flags, false, expires_at FROM added
        WHERE run_at > at OR locks_later AND lock_key IS NOT NULL
    ), held_up AS (
        INSERT INTO holdfast.blocked (lock_key, rank, id, lane, attempt, flags, expires_at)
        SELECT lock_key, rank, id, lane, 0, flags, expires_at FROM added
        WHERE run_at <= at AND lock_key IS NOT NULL AND NOT locks_later
    ), will_expire AS (
        INSERT INTO holdfast.expiring (expires_at, id)
        SELECT expires_at, id FROM added WHERE expires_at IS NOT NULL
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT
            CASE
                WHEN run_at > at OR locks_later AND lock_key IS NOT NULL THEN 'waiting'
                WHEN lock_key IS NULL THEN 'ready'
                ELSE 'blocked'
            END,
            lane, count(*)
        FROM added GROUP BY 1, 2
    )
    SELECT count(*) INTO written FROM added;
    IF locks IS NOT NULL AND NOT locks_later THEN
        PERFORM holdfast.settle_locks(locks);
    END IF;
    IF written < cardinality(ids) OR locks IS NOT NULL THEN
        RETURN QUERY SELECT a.* FROM holdfast.answers(
            ids::uuid[], locks, repeats, firsts, outcomes,
            written + cardinality(repeats) < cardinality(ids)
        ) AS a;
    END IF;
END $$;

-- The answers that are not simply "created, queued". `some_known`: some ids were there before.
CREATE FUNCTION holdfast.answers(
    ids uuid[], locks text[], repeats integer[], firsts uuid[], outcomes text[], some_known boolean
) RETURNS TABLE (n integer, task_id text, outcome text, state text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT answer.*
    FROM (
        SELECT
            given.n::integer, coalesce(repeat.id, given.id)::text AS task_id,
            coalesce(repeat.outcome, 'created') AS outcome,
            CASE
                WHEN repeat.id IS NOT NULL THEN holdfast.state_of(repeat.id)
                WHEN some_known THEN holdfast.state_of(given.id)
                WHEN given.lock_key IS NULL
                OR EXISTS (SELECT 1 FROM holdfast.waiting AS w WHERE w.id = given.id)
                OR EXISTS (
                    SELECT 1 FROM holdfast.lock AS l
                    WHERE l.key = given.lock_key AND l.holder = given.id
                ) THEN 'queued'
                ELSE 'blocked'
            END AS state
        FROM unnest(ids, locks) WITH ORDINALITY AS given (id, lock_key, n)
        LEFT JOIN unnest(repeats, firsts, outcomes) AS repeat (n, id, outcome)
        ON repeat.n = given.n
    ) AS answer
    WHERE answer.outcome <> 'created' OR answer.state <> 'queued';
END $$;

CREATE FUNCTION holdfast.add(
    tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL
) RETURNS TABLE ("position" integer, task_id text, outcome text, state text)
LANGUAGE sql
AS $$
    WITH given AS (
        SELECT task.*, row_number() OVER () AS n
        FROM json_to_recordset(add.tasks) AS task (
            id text, name text, payload text, queue text, priority text, head_start bigint,
            delay double precision, run_at bigint, expires_in double precision, expires_at bigint,
            max_retries bigint, timeout double precision, retry text, unique_key text,
            idempotency_key text, fingerprint text, lock text, requires text[], tags json,
            owner text, trace text, parent_id text
        )
    ), columns AS (
        SELECT
            array_agg(id ORDER BY n) AS ids,
            array_agg(name ORDER BY n) AS names,
            array_agg(convert_to(payload, 'UTF8') ORDER BY n) AS payloads,
            array_agg(
                holdfast.lane_of(
                    coalesce(queue, 'default'), coalesce(requires, '{}'),
                    coalesce(priority, 'normal')
                ) ORDER BY n
            ) AS lanes,
            array_agg(coalesce(head_start, 0) ORDER BY n) AS head_starts,
            array_agg(coalesce(max_retries, 3) ORDER BY n) AS max_retries,
            array_agg(timeout ORDER BY n) AS timeouts,
            array_agg(holdfast.as_us(delay) ORDER BY n) AS delays,
            array_agg(run_at ORDER BY n) AS run_ats,
            array_agg(holdfast.as_us(expires_in) ORDER BY n) AS expires_in,
            array_agg(expires_at ORDER BY n) AS expires_at,
            array_agg(retry ORDER BY n) AS retries,
            array_agg(unique_key ORDER BY n) AS unique_keys,
            array_agg(idempotency_key ORDER BY n) AS idempotency_keys,
            array_agg(fingerprint ORDER BY n) AS fingerprints,
            array_agg(lock ORDER BY n) AS locks,
            array_agg(owner ORDER BY n) AS owners,
            array_agg(trace ORDER BY n) AS traces,
            array_agg(parent_id ORDER BY n) AS parents,
            array_agg(CASE WHEN json_array_length(tags) > 0 THEN tags::text END ORDER BY n) AS tags
        FROM given
    )
    SELECT
        given.n::integer, coalesce(answer.task_id, given.id), coalesce(answer.outcome, 'created'),
        coalesce(answer.state, 'queued')
    FROM given
    LEFT JOIN (
        SELECT answer.*
        FROM columns AS c
        CROSS JOIN LATERAL holdfast.add_rows(
            c.ids, c.names, c.payloads, c.lanes, c.head_starts, c.max_retries, c.timeouts, c.delays,
            c.run_ats, c.expires_in, c.expires_at, c.retries,
            holdfast.or_null(c.unique_keys), holdfast.or_null(c.idempotency_keys), c.fingerprints,
            holdfast.or_null(c.locks), c.owners, c.traces, c.parents, c.tags,
            holdfast.as_us(add.idempotency_window), add.now, true
        ) AS answer
        WHERE c.ids IS NOT NULL
    ) AS answer ON answer.n = given.n
    ORDER BY given.n
$$;

CREATE FUNCTION holdfast.submit(
    name text, payload jsonb DEFAULT '{}', queue text DEFAULT 'default',
    priority text DEFAULT 'normal', run_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL, max_retries integer DEFAULT NULL,
    timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, idempotency_key text DEFAULT NULL,
    lock text DEFAULT NULL, requires text[] DEFAULT '{}', tags text[] DEFAULT '{}',
    owner text DEFAULT NULL, head_start interval DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    word text := CASE WHEN lower(priority) = 'medium' THEN 'normal' ELSE lower(priority) END;
    answer uuid;
BEGIN
    IF jsonb_typeof(payload) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'payload: expected a JSON object of arguments, got %', payload
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF word IS NULL OR word NOT IN ('critical', 'high', 'normal', 'low') THEN
        RAISE EXCEPTION 'priority: expected critical, high, normal or low, got %', priority
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT task_id::uuid INTO answer FROM holdfast.add(json_build_array(json_build_object(
        'id', holdfast.new_id(), 'name', name, 'payload', payload::text, 'queue', queue,
        'priority', word,
        'head_start', coalesce(
            (extract(epoch FROM head_start) * 1000000)::bigint, holdfast.head_start(word)
        ),
        'delay', extract(epoch FROM delay),
        'run_at', (extract(epoch FROM run_at) * 1000000)::bigint,
        'expires_at', (extract(epoch FROM expires_at) * 1000000)::bigint,
        'max_retries', coalesce(
            max_retries,
            CASE word WHEN 'critical' THEN 5 WHEN 'high' THEN 5 WHEN 'normal' THEN 3 ELSE 2 END
        ),
        'timeout', coalesce(
            extract(epoch FROM timeout),
            CASE word WHEN 'critical' THEN 300 WHEN 'high' THEN 300 WHEN 'normal' THEN 600
            ELSE 900 END
        ),
        'unique_key', unique_key, 'idempotency_key', idempotency_key,
        'fingerprint', CASE WHEN idempotency_key IS NOT NULL THEN md5(name || ' ' || payload) END,
        'lock', lock, 'requires', requires, 'tags', tags, 'owner', owner
    )));
    PERFORM holdfast.wake(ARRAY[queue]);
    RETURN answer;
END $$;

-- Claims.
--
-- A *stream* is one lane's line (`late` or not). Most claims find work in a single stream and walk
-- its index from the head; with several, `take_merged` keeps the order by (rank, id) exact across
-- them. Rows that another claim has locked are passed over, so claimers never wait for each other.

CREATE FUNCTION holdfast.claim(
    worker text, queues text[], capabilities text[], max integer, now bigint DEFAULT NULL
) RETURNS TABLE (
    id text, rank bigint, lane integer, attempt integer, name text, payload bytea,
    max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint,
    trace text, owner text, charged integer, crash_count integer, cause text
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(claim.now);
    me integer;
    eligible integer[];
    next_due bigint;
    lanes integer[];
    lates boolean[];
    heads bigint[];
    rows tid[];
    careful boolean;
BEGIN
    -- Locked until the claim is committed, so that nobody buries the worker meanwhile: what it has
    -- started would never be looked for. (A heartbeat waits as long.)
    SELECT number INTO me FROM holdfast.worker
    WHERE id = claim.worker AND status IN ('active', 'draining') FOR SHARE;
    IF me IS NULL THEN
        RAISE EXCEPTION 'worker % is gone', claim.worker USING ERRCODE = 'HF001';
    END IF;
    IF EXISTS (SELECT 1 FROM holdfast.expiring WHERE expires_at <= at) THEN
        PERFORM holdfast.end_expired(at);
    END IF;
    SELECT array_agg(lane.id) INTO eligible
    FROM holdfast.lane
    WHERE (queues IS NULL OR queue = ANY (queues)) AND requires <@ capabilities
    AND NOT EXISTS (SELECT 1 FROM holdfast.paused_queue AS p WHERE p.queue = lane.queue);
    next_due := holdfast.promote(eligible, at);
    -- The head of every stream that has one: the first row not taken, above the floor.
    SELECT array_agg(s.lane), array_agg(s.late), array_agg(head.rank)
    INTO lanes, lates, heads
    FROM (
        SELECT e.lane, late.late, CASE WHEN NOT late.late THEN floor.active END AS floor
        FROM unnest(eligible) AS e (lane)
        LEFT JOIN holdfast.floor ON floor.lane = e.lane
        CROSS JOIN (VALUES (false), (true)) AS late (late)
    ) AS s
    CROSS JOIN LATERAL (
        SELECT r.rank FROM holdfast.ready AS r
        WHERE r.lane = s.lane AND r.late = s.late
        AND r.rank >= coalesce(s.floor, -9223372036854775808)
        ORDER BY r.rank, r.id LIMIT 1
    ) AS head;

    RETURN QUERY SELECT
        NULL::text, next_due, NULL::integer, NULL::integer, NULL::text, NULL::bytea, NULL::bigint,
        NULL::double precision, NULL::text, NULL::text, NULL::bigint, NULL::text, NULL::text,
        NULL::integer, NULL::integer, NULL::text;
    IF lanes IS NULL OR max <= 0 THEN
        RETURN;
    END IF;
    IF cardinality(lanes) = 1 THEN
        SELECT array_agg(first.ctid), bool_or(first.flags <> 0) INTO rows, careful
        FROM (
            SELECT r.ctid, r.flags FROM holdfast.ready AS r
            WHERE r.lane = lanes[1] AND r.late = lates[1] AND r.rank >= heads[1]
            AND (r.expires_at IS NULL OR r.expires_at > at)
            ORDER BY r.rank, r.id LIMIT max
            FOR UPDATE SKIP LOCKED
        ) AS first;
    ELSE
        SELECT * INTO rows, careful FROM holdfast.take_merged(lanes, lates, heads, max, at);
    END IF;

    -- Read again: what was let go of since `at` may be among the rows, and must not seem to start
    -- before the task that held its lock, or its own last attempt, has ended.
    at := holdfast.now_us(claim.now);
    IF careful THEN
        RETURN QUERY SELECT * FROM holdfast.start_carefully(rows, me, at);
    ELSE
        RETURN QUERY
        WITH taken AS (
            DELETE FROM holdfast.ready AS r WHERE r.ctid = ANY (rows)
            RETURNING r.id, r.rank, r.lane, r.attempt + 1 AS attempt
        ), started AS (
            INSERT INTO holdfast.run (id, started_at, lane, attempt, worker, flags)
            SELECT taken.id, at, taken.lane, taken.attempt, me, 0 FROM taken
        ), counted AS (
            INSERT INTO holdfast.tally (kind, key, n)
            SELECT kind, taken.lane, sign * count(*)
            FROM taken CROSS JOIN (VALUES ('ready', -1), ('running', 1)) AS change (kind, sign)
            GROUP BY kind, sign, taken.lane
        )
        SELECT
            task.id::text, taken.rank, taken.lane, taken.attempt, task.name, task.payload,
            task.max_retries, task.timeout, task.retry, task.lock_key, NULL::bigint, task.trace,
            task.owner, 0, 0, 'submitted'
        FROM taken CROSS JOIN LATERAL (
            SELECT t.* FROM holdfast.task AS t WHERE t.id = taken.id OFFSET 0
        ) AS task;
    END IF;
    IF cardinality(rows) >= 10 OR random() < 0.02 THEN -- a few rows leave little to walk over
        PERFORM holdfast.raise_floors(lanes, lates, heads);
    END IF;
END $$;

-- The first rows of several streams, merged by (rank, id). A part of each stream is looked at; up to
-- the smallest end of a part that was cut off, the order is known. Those rows are locked, stream by
-- stream; if that were too few, the next parts follow, larger.
CREATE FUNCTION holdfast.take_merged(
    lanes integer[], lates boolean[], heads bigint[], max integer, at bigint,
    OUT rows tid[], OUT careful boolean
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    part integer := 16 + 2 * max / cardinality(lanes);
    from_rank bigint[] := heads;
    from_id uuid[] := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[cardinality(lanes)]);
    until_rank bigint;
    until_id uuid;
    more tid[];
    more_careful boolean;
BEGIN
    rows := '{}';
    careful := false;
    LOOP
        -- Where a part ends there may be more in that stream: the order is certain up to the least
        -- of these ends. No more than what is missing is wanted.
        WITH looked_at AS (
            SELECT s.n, r.rank, r.id, r.nth
            FROM unnest(lanes, lates, from_rank, from_id) WITH ORDINALITY AS s (lane, late, rank, id, n)
            CROSS JOIN LATERAL (
                SELECT ready.rank, ready.id, row_number() OVER () AS nth
                FROM holdfast.ready
                WHERE ready.lane = s.lane AND ready.late = s.late
                AND (ready.rank, ready.id) > (s.rank, s.id)
                ORDER BY ready.rank, ready.id LIMIT part
            ) AS r
        ), certain AS (
            SELECT e.rank, e.id FROM looked_at AS e WHERE e.nth = part ORDER BY e.rank, e.id LIMIT 1
        ), wanted AS (
            SELECT w.rank, w.id FROM looked_at AS w
            WHERE NOT EXISTS (SELECT 1 FROM certain AS c WHERE (w.rank, w.id) > (c.rank, c.id))
            ORDER BY w.rank, w.id LIMIT max - cardinality(rows)
        )
        SELECT last.rank, last.id INTO until_rank, until_id
        FROM wanted AS last ORDER BY last.rank DESC, last.id DESC LIMIT 1;
        EXIT WHEN until_rank IS NULL;

        -- Rows that came in meanwhile may be among them: no more than wanted are taken.
        SELECT array_agg(first.ctid), bool_or(first.flags <> 0) INTO more, more_careful
        FROM (
            SELECT mine.*
            FROM unnest(lanes, lates, from_rank, from_id) AS s (lane, late, rank, id)
            CROSS JOIN LATERAL (
                SELECT r.ctid, r.flags, r.rank, r.id FROM holdfast.ready AS r
                WHERE r.lane = s.lane AND r.late = s.late
                AND (r.rank, r.id) > (s.rank, s.id) AND (r.rank, r.id) <= (until_rank, until_id)
                AND (r.expires_at IS NULL OR r.expires_at > at)
                ORDER BY r.rank, r.id LIMIT max
                FOR UPDATE SKIP LOCKED
            ) AS mine
            ORDER BY mine.rank, mine.id LIMIT max - cardinality(rows)
        ) AS first;
        rows := rows || coalesce(more, '{}');
        careful := careful OR coalesce(more_careful, false);
        EXIT WHEN cardinality(rows) >= max;
        from_rank := array_fill(until_rank, ARRAY[cardinality(lanes)]);
        from_id := array_fill(until_id, ARRAY[cardinality(lanes)]);
        part := part * 2;
    END LOOP;
END $$;

-- Start tasks of which some have a lock, an expiry or an earlier attempt.
CREATE FUNCTION holdfast.start_carefully(rows tid[], me integer, at bigint) RETURNS TABLE (
    id text, rank bigint, lane integer, attempt integer, name text, payload bytea,
    max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint,
    trace text, owner text, charged integer, crash_count integer, cause text
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH taken AS (
        DELETE FROM holdfast.ready AS r WHERE r.ctid = ANY (rows)
        RETURNING r.id, r.rank, r.lane, r.attempt + 1 AS attempt, r.flags, r.expires_at
    ), fenced AS MATERIALIZED (
        SELECT
            taken.*, CASE WHEN taken.flags & 1 <> 0 THEN nextval('holdfast.fence') END AS fence
        FROM (SELECT * FROM taken ORDER BY taken.rank, taken.id) AS taken
    ), started AS (
        INSERT INTO holdfast.run (id, started_at, lane, attempt, worker, flags, fence)
        SELECT f.id, at, f.lane, f.attempt, me, f.flags, f.fence FROM fenced AS f
    ), will_not_expire AS (
        DELETE FROM holdfast.expiring AS e USING taken
        WHERE taken.flags & 8 <> 0 AND e.expires_at = taken.expires_at AND e.id = taken.id
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT kind, taken.lane, sign * count(*)
        FROM taken CROSS JOIN (VALUES ('ready', -1), ('running', 1)) AS change (kind, sign)
        GROUP BY kind, sign, taken.lane
    )
    SELECT
        task.id::text, taken.rank, taken.lane, taken.attempt, task.name, task.payload,
        task.max_retries, task.timeout, task.retry, task.lock_key, taken.fence, task.trace,
        task.owner, coalesce(extra.charged, 0), coalesce(extra.crash_count, 0),
        coalesce(extra.cause, 'submitted')
    FROM fenced AS taken
    JOIN holdfast.task ON task.id = taken.id
    LEFT JOIN LATERAL (
        SELECT e.* FROM holdfast.extra AS e
        WHERE e.id = taken.id AND taken.flags & 4 <> 0 LIMIT 1
    ) AS extra ON true;
END $$;

-- Let the floors of these streams rise, if it is time. In three steps, each in another transaction:
--
-- 1. `pending` is set to the rank of the first row there is. Whoever inserts from now on below it
--    inserts as `late`.
-- 2. `seen_by` is set to the next transaction number. Who has a smaller one may not have seen
--    `pending`; all others have, because who inserts gets a number first and reads `pending` then.
-- 3. When all transactions with smaller numbers have ended, nothing can come in below `pending` any
--    more. What is there is looked at once more: `active` rises to the first of it, or to `pending`.
--
-- Rows that a transaction in progress has deleted still count as rows: it may roll back.
CREATE FUNCTION holdfast.raise_floors(lanes integer[], lates boolean[], heads bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    f holdfast.floor;
    first bigint;
BEGIN
    FOR i IN 1 .. cardinality(lanes) LOOP
        CONTINUE WHEN lates[i];
        SELECT * INTO f FROM holdfast.floor WHERE floor.lane = lanes[i];
        IF NOT FOUND THEN
            INSERT INTO holdfast.floor (lane, active, pending, moved_at)
            VALUES (lanes[i], -9223372036854775808, heads[i], clock_timestamp())
            ON CONFLICT DO NOTHING;
            CONTINUE;
        END IF;
        CONTINUE WHEN f.moved_at > clock_timestamp() - interval '40 milliseconds';
        SELECT * INTO f FROM holdfast.floor WHERE floor.lane = lanes[i] FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        IF f.pending > f.active AND f.seen_by IS NULL THEN
            UPDATE holdfast.floor
            SET seen_by = pg_snapshot_xmax(pg_current_snapshot()), moved_at = clock_timestamp()
            WHERE floor.lane = lanes[i];
            CONTINUE;
        END IF;
        CONTINUE WHEN f.seen_by > pg_snapshot_xmin(pg_current_snapshot());
        SELECT r.rank INTO first FROM holdfast.ready AS r
        WHERE r.lane = lanes[i] AND NOT r.late AND r.rank >= f.active
        ORDER BY r.rank LIMIT 1;
        UPDATE holdfast.floor
        SET active = least(f.pending, first), seen_by = NULL, moved_at = clock_timestamp(),
            pending = greatest(f.pending, coalesce(first, heads[i]))
        WHERE floor.lane = lanes[i];
    END LOOP;
END $$;

-- What time has moved: due tasks stand in line, expired ones end. No timer does it: every claim does,
-- whoever claims, in slices.

-- Promote what is due, in every lane; answers in how many microseconds the next task of these lanes
-- will be (0: at once, because another claim is about to promote some). Runs under the pins of
-- `claim`.
CREATE FUNCTION holdfast.promote(eligible integer[], at bigint) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    next_due bigint;
    is_due boolean;
BEGIN
    FOR round IN 1 .. 2 LOOP
        SELECT min(first.due_at) FILTER (WHERE lane.id = ANY (eligible)), bool_or(first.due_at <= at)
        INTO next_due, is_due
        FROM holdfast.lane
        CROSS JOIN LATERAL (
            SELECT w.due_at FROM holdfast.waiting AS w WHERE w.lane = lane.id
            ORDER BY w.due_at LIMIT 1
        ) AS first;
        EXIT WHEN round = 2 OR is_due IS NOT TRUE;
        PERFORM holdfast.promote_due(at);
    END LOOP;
    RETURN CASE WHEN next_due IS NOT NULL THEN greatest(next_due - at, 0) END;
END $$;

CREATE FUNCTION holdfast.promote_due(at bigint) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    all_late boolean := pg_current_xact_id() IS NULL
        OR current_setting('transaction_isolation') <> 'read committed';
    due uuid[];
    locks text[];
    found bigint;
BEGIN
    FOR round IN 1 .. 5 LOOP
        SELECT array_agg(w.id), array_agg(t.lock_key) FILTER (WHERE t.lock_key IS NOT NULL)
        INTO due, locks
        FROM holdfast.lane
        CROSS JOIN LATERAL (
            SELECT waiting.id, waiting.flags FROM holdfast.waiting
            WHERE waiting.lane = lane.id AND waiting.due_at <= at
            ORDER BY waiting.due_at LIMIT 1000
        ) AS w
        LEFT JOIN LATERAL (
            SELECT task.lock_key FROM holdfast.task WHERE task.id = w.id AND w.flags & 1 <> 0 LIMIT 1
        ) AS t ON true;
        EXIT WHEN due IS NULL;
        IF locks IS NOT NULL THEN
            PERFORM holdfast.hold_locks(locks);
        END IF;
        WITH mine AS (
            SELECT w.id FROM holdfast.waiting AS w WHERE w.id = ANY (due)
            ORDER BY w.id FOR UPDATE SKIP LOCKED
        ), moved AS (
            DELETE FROM holdfast.waiting AS w USING mine WHERE w.id = mine.id
            RETURNING w.*
        ), lined_up AS (
            INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
            SELECT
                m.id, m.rank, m.lane, m.attempt, m.flags,
                all_late OR m.rank < coalesce(floor.pending, m.rank), m.expires_at
            FROM moved AS m LEFT JOIN holdfast.floor ON floor.lane = m.lane
            WHERE m.flags & 1 = 0
        ), held_up AS (
            INSERT INTO holdfast.blocked (lock_key, rank, id, lane, attempt, flags, expires_at)
            SELECT task.lock_key, m.rank, m.id, m.lane, m.attempt, m.flags, m.expires_at
            FROM moved AS m JOIN holdfast.task ON task.id = m.id
            WHERE m.flags & 1 <> 0
        ), counted AS (
            INSERT INTO holdfast.tally (kind, key, n)
            SELECT 'waiting', m.lane, -count(*) FROM moved AS m GROUP BY m.lane
            UNION ALL
            SELECT CASE WHEN m.flags & 1 = 0 THEN 'ready' ELSE 'blocked' END, m.lane, count(*)
            FROM moved AS m GROUP BY 1, 2
            UNION ALL
            SELECT 'retrying', 0, -count(*) FROM moved AS m WHERE m.retrying HAVING count(*) > 0
        )
        SELECT count(*) INTO found FROM moved;
        IF locks IS NOT NULL THEN
            PERFORM holdfast.settle_locks(locks);
        END IF;
        EXIT WHEN found < 1000;
    END LOOP;
END $$;

-- End what was not started in time.
CREATE FUNCTION holdfast.end_expired(at bigint) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    late uuid[];
BEGIN
    FOR round IN 1 .. 5 LOOP
        SELECT array_agg(first.id) INTO late
        FROM (
            SELECT e.id FROM holdfast.expiring AS e WHERE e.expires_at <= at
            ORDER BY e.expires_at LIMIT 1000
        ) AS first;
        EXIT WHEN late IS NULL;
        PERFORM holdfast.end_idle(late, 'expired', at);
        EXIT WHEN cardinality(late) < 1000;
    END LOOP;
END $$;

-- Take a task out of the place where it waits for its turn; NULL if it does not. The row of its lock,
-- if it has one, is locked already.
CREATE FUNCTION holdfast.take_out(
    wanted uuid, lane integer, rank bigint, lock_key text,
    OUT place text, OUT attempt integer, OUT flags smallint, OUT retrying boolean,
    OUT expires_at bigint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    DELETE FROM holdfast.waiting AS w WHERE w.id = wanted
    RETURNING 'waiting', w.attempt, w.flags, w.retrying, w.expires_at
    INTO place, attempt, flags, retrying, expires_at;
    IF place IS NULL THEN
        DELETE FROM holdfast.ready AS r
        WHERE r.lane = take_out.lane AND r.late IN (false, true) AND r.rank = take_out.rank
        AND r.id = wanted
        RETURNING 'ready', r.attempt, r.flags, false, r.expires_at
        INTO place, attempt, flags, retrying, expires_at;
    END IF;
    IF place IS NULL AND lock_key IS NOT NULL THEN
        DELETE FROM holdfast.blocked AS b
        WHERE b.lock_key = take_out.lock_key AND b.rank = take_out.rank AND b.id = wanted
        RETURNING 'blocked', b.attempt, b.flags, false, b.expires_at
        INTO place, attempt, flags, retrying, expires_at;
    END IF;
    IF place = 'ready' AND lock_key IS NOT NULL THEN
        UPDATE holdfast.lock AS l SET holder = NULL
        WHERE l.key = take_out.lock_key AND l.holder = wanted;
    END IF;
    IF place IS NOT NULL THEN
        INSERT INTO holdfast.tally VALUES (place, take_out.lane, -1);
    END IF;
    IF retrying THEN
        INSERT INTO holdfast.tally VALUES ('retrying', 0, -1);
    END IF;
    IF flags & 8 <> 0 THEN
        DELETE FROM holdfast.expiring AS e WHERE e.expires_at = take_out.expires_at AND e.id = wanted;
    END IF;
END $$;

-- Cancel those of these tasks that are not running and show one of these states (NULL: any); answers
-- which. The event has the reason's name.
CREATE FUNCTION holdfast.end_idle(
    ids uuid[], reason text, at bigint, states text[] DEFAULT NULL
) RETURNS uuid[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    locks text[];
    t record;
    gone record;
    ended uuid[] := '{}';
BEGIN
    PERFORM holdfast.hold_unique_keys(ids);
    locks := ARRAY(
        SELECT task.lock_key FROM holdfast.task
        WHERE task.id = ANY (ids) AND task.lock_key IS NOT NULL
    );
    IF locks <> '{}' THEN
        PERFORM holdfast.hold_locks(locks);
    END IF;
    FOR t IN
        SELECT
            task.id, task.lane, task.lock_key, task.name, task.unique_key,
            coalesce(e.rank, task.rank) AS rank, e.started_at, e.worker, e.fence, e.error, e.result
        FROM holdfast.task LEFT JOIN holdfast.extra AS e ON e.id = task.id
        WHERE task.id = ANY (ids) ORDER BY task.id
    LOOP
        CONTINUE WHEN states IS NOT NULL AND holdfast.state_of(t.id) <> ALL (states);
        SELECT * INTO gone FROM holdfast.take_out(t.id, t.lane, t.rank, t.lock_key);
        CONTINUE WHEN gone.place IS NULL;
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, fence, reason, error, result
        )
        VALUES (
            t.id, at, t.started_at, 'cancelled', gone.attempt, t.worker, gone.flags, t.fence,
            reason, t.error, t.result
        );
        INSERT INTO holdfast.event (id, at, kind) VALUES (t.id, at, reason);
        INSERT INTO holdfast.tally VALUES ('cancelled', at / 1000000, 1);
        IF t.unique_key IS NOT NULL THEN
            DELETE FROM holdfast.unique_key AS u
            WHERE u.name = t.name AND u.key = t.unique_key AND u.id = t.id;
        END IF;
        ended := ended || t.id;
    END LOOP;
    IF locks <> '{}' THEN
        PERFORM holdfast.settle_locks(locks);
    END IF;
    RETURN ended;
END $$;

-- How attempts ended.

-- Successes of first attempts: one guarded statement for all of them, and the keys of those that have
-- some. What has a row in `extra`, came too late or is not there is left to `settle`, which takes what
-- was written here for a repeat and lets it pass.
CREATE FUNCTION holdfast.complete(
    worker text, ids text[], attempts integer[], results bytea[], now bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(complete.now);
    me integer;
    written bigint;
    keyed uuid[];
BEGIN
    SELECT number INTO me FROM holdfast.worker WHERE id = complete.worker;
    -- From the given ids to their rows, never the other way round: LATERAL and OFFSET leave the planner
    -- no choice. It had one once, and after `run` was vacuumed while it was empty a batch of 2,000
    -- took fifty times as long.
    WITH ended AS MATERIALIZED (
        SELECT g.id, g.attempt, g.result, r.*
        FROM unnest(ids::uuid[], attempts, results) AS g (id, attempt, result)
        CROSS JOIN LATERAL (
            SELECT run.ctid AS row, run.lane, run.started_at, run.flags, run.fence
            FROM holdfast.run
            WHERE run.id = g.id AND run.attempt = g.attempt AND run.worker = me
            AND run.flags & 4 = 0
            OFFSET 0 FOR UPDATE
        ) AS r
    ), gone AS (
        DELETE FROM holdfast.run AS r WHERE r.ctid = ANY (ARRAY(SELECT e.row FROM ended AS e))
    ), kept AS (
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, fence, ended, result
        )
        SELECT
            e.id, at, e.started_at, 'completed', e.attempt, me, e.flags, e.fence, 'completed',
            e.result
        FROM ended AS e
    ), by_lane AS (
        SELECT
            e.lane, count(*) AS n, array_agg(e.id) FILTER (WHERE e.flags & 3 <> 0) AS keyed
        FROM ended AS e GROUP BY e.lane
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT 'running', by_lane.lane, -by_lane.n FROM by_lane
        UNION ALL SELECT 'completed', at / 1000000, sum(by_lane.n) FROM by_lane HAVING count(*) > 0
    )
    SELECT
        coalesce(sum(b.n), 0), ARRAY(SELECT unnest(k.keyed) FROM by_lane AS k)
    INTO written, keyed FROM by_lane AS b;
    IF keyed <> '{}' THEN
        PERFORM holdfast.release_keys(keyed);
    END IF;
    RETURN written;
END $$;

-- Let go of the unique keys and locks of tasks that have just ended.
CREATE FUNCTION holdfast.release_keys(ids uuid[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    locks text[];
BEGIN
    PERFORM holdfast.hold_unique_keys(ids);
    DELETE FROM holdfast.unique_key AS u USING holdfast.task AS t
    WHERE t.id = ANY (ids) AND t.unique_key IS NOT NULL
    AND u.name = t.name AND u.key = t.unique_key AND u.id = t.id;
    locks := ARRAY(
        SELECT t.lock_key FROM holdfast.task AS t
        WHERE t.id = ANY (ids) AND t.lock_key IS NOT NULL
    );
    IF locks <> '{}' THEN
        PERFORM holdfast.hold_locks(locks);
        UPDATE holdfast.lock AS l SET holder = NULL
        WHERE l.key = ANY (locks) AND l.holder = ANY (ids);
        PERFORM holdfast.settle_locks(locks);
    END IF;
END $$;

-- Any settlements, one by one in their order. Answers those that came too late: their position, and
-- who has the task now.
CREATE FUNCTION holdfast.settle(
    ids text[], attempts integer[], workers text[], states text[], ends text[], charges integer[],
    crash_counts integer[], results bytea[], errors text[], delays bigint[], causes text[],
    reasons text[], at bigint
) RETURNS TABLE (n integer, holder text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_variable
DECLARE
    mine uuid[];
    locks text[];
    s record;
BEGIN
    -- Whose lease holds: locked, in order.
    SELECT array_agg(held.id) INTO mine
    FROM (
        SELECT r.id
        FROM (
            SELECT * FROM unnest(ids::uuid[], attempts, workers) AS given (id, attempt, worker)
            ORDER BY given.id
        ) AS g
        CROSS JOIN LATERAL (
            SELECT run.id FROM holdfast.run
            WHERE run.id = g.id AND run.attempt = g.attempt AND run.worker = (
                SELECT w.number FROM holdfast.worker AS w WHERE w.id = g.worker
            )
            OFFSET 0 FOR UPDATE
        ) AS r
    ) AS held;
    PERFORM holdfast.hold_unique_keys(mine);
    locks := ARRAY(
        SELECT task.lock_key FROM holdfast.task
        WHERE task.id = ANY (mine) AND task.lock_key IS NOT NULL
    );
    IF locks <> '{}' THEN
        PERFORM holdfast.hold_locks(locks);
    END IF;
    FOR s IN
        SELECT g.*
        FROM unnest(
            ids, attempts, workers, states, ends, charges, crash_counts, results, errors,
            delays, causes, reasons
        ) WITH ORDINALITY AS g (
            task_id, attempt, worker, state, ended, charged, crash_count, result, error, delay,
            cause, reason, n
        )
        WHERE NOT EXISTS (
            SELECT 1 FROM holdfast.done AS d JOIN holdfast.worker AS w ON w.number = d.worker
            WHERE d.id = g.task_id::uuid AND d.attempt = g.attempt AND w.id = g.worker
            AND d.ended = g.ended
        )
        ORDER BY g.n
    LOOP
        CONTINUE WHEN holdfast.settle_one(
            s.task_id::uuid, s.attempt, s.worker, s.state, s.ended, s.charged, s.crash_count,
            s.result, s.error, s.delay, s.cause, s.reason, at
        );
        CONTINUE WHEN holdfast.was_saved(s.task_id::uuid, s.attempt, s.worker, s.ended);
        INSERT INTO holdfast.event (id, at, kind, attempt, worker_id)
        SELECT task.id, settle.at, 'late_result_refused', s.attempt, s.worker
        FROM holdfast.task WHERE task.id = s.task_id::uuid;
        INSERT INTO holdfast.tally VALUES ('refused', 0, 1);
        n := s.n;
        holder := holdfast.holder_of(s.task_id::uuid);
        RETURN NEXT;
    END LOOP;
    IF locks <> '{}' THEN
        PERFORM holdfast.settle_locks(locks);
    END IF;
END $$;

-- Who runs a task.
CREATE FUNCTION holdfast.holder_of(wanted uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT w.id FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
    WHERE r.id = wanted
$$;

-- Whether this very end of an attempt is in the history.
CREATE FUNCTION holdfast.was_saved(wanted uuid, attempt integer, worker text, ended text)
RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT 1 FROM holdfast.attempt AS a JOIN holdfast.worker AS w ON w.number = a.worker
        WHERE a.id = wanted AND a.number = was_saved.attempt AND w.id = was_saved.worker
        AND a.ended = was_saved.ended
    ) OR EXISTS (
        SELECT 1 FROM holdfast.done AS d JOIN holdfast.worker AS w ON w.number = d.worker
        WHERE d.id = wanted AND d.attempt = was_saved.attempt AND w.id = was_saved.worker
        AND d.ended = was_saved.ended
    )
$$;

-- One settlement; false if the lease does not hold. Its run, unique and lock rows are locked, and the
-- plans pinned by the caller, which is cheaper than for each.
CREATE FUNCTION holdfast.settle_one(
    wanted uuid, attempt integer, worker text, state text, ended text, charged integer,
    crash_count integer, result bytea, error text, delay bigint, cause text, reason text, at bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    r holdfast.run;
    t holdfast.task;
    e holdfast.extra;
    due bigint := at + delay;
    is_terminal boolean;
    was_charged boolean;
    expiry bigint;
BEGIN
    DELETE FROM holdfast.run AS old USING holdfast.worker AS w
    WHERE old.id = wanted AND old.attempt = settle_one.attempt
    AND w.number = old.worker AND w.id = settle_one.worker
    RETURNING old.* INTO r;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT * INTO t FROM holdfast.task WHERE task.id = wanted;
    SELECT * INTO e FROM holdfast.extra WHERE extra.id = wanted;
    is_terminal := state IN ('completed', 'failed', 'cancelled', 'dead_letter');
    IF e.cancel_requested THEN
        DELETE FROM holdfast.stop WHERE stop.worker = r.worker AND stop.id = wanted;
        IF NOT is_terminal THEN -- `lifecycle.cancelled_instead`
            state := 'cancelled';
            cause := NULL;
            reason := 'cancelled';
            is_terminal := true;
        END IF;
    END IF;
    was_charged := charged > coalesce(e.charged, 0);
    IF e.id IS NOT NULL OR charged <> 0 OR crash_count <> 0 OR NOT is_terminal THEN
        r.flags := r.flags | 4::smallint;
        INSERT INTO holdfast.extra AS old (
            id, charged, crash_count, cause, started_at, worker, fence, error, reason, result,
            run_at
        )
        VALUES (
            wanted, charged, crash_count, coalesce(cause, 'submitted'), r.started_at, r.worker,
            r.fence, error, reason, result, CASE WHEN is_terminal THEN NULL ELSE due END
        )
        ON CONFLICT (id) DO UPDATE SET
            charged = excluded.charged, crash_count = excluded.crash_count,
            cause = coalesce(settle_one.cause, old.cause), started_at = excluded.started_at,
            worker = excluded.worker, fence = excluded.fence, error = excluded.error,
            reason = excluded.reason, result = excluded.result,
            run_at = coalesce(excluded.run_at, old.run_at);
    END IF;
    INSERT INTO holdfast.tally VALUES ('running', r.lane, -1);
    IF t.lock_key IS NOT NULL THEN
        UPDATE holdfast.lock AS l SET holder = NULL WHERE l.key = t.lock_key AND l.holder = wanted;
    END IF;
    IF is_terminal THEN
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, charged, fence, ended,
            reason, error, result
        )
        VALUES (
            wanted, at, r.started_at, state::holdfast.state, r.attempt, r.worker, r.flags,
            was_charged, r.fence, ended, reason, error, result
        );
        IF t.unique_key IS NOT NULL THEN
            DELETE FROM holdfast.unique_key AS u
            WHERE u.name = t.name AND u.key = t.unique_key AND u.id = wanted;
        END IF;
        INSERT INTO holdfast.tally VALUES (state, at / 1000000, 1);
        RETURN true;
    END IF;
    INSERT INTO holdfast.attempt (
        id, number, cause, worker, started_at, ended_at, ended, charged, error
    )
    VALUES (
        wanted, r.attempt, coalesce(e.cause, 'submitted'), r.worker, r.started_at, at, ended,
        was_charged, error
    );
    expiry := CASE WHEN r.flags & 8 <> 0 THEN t.expires_at END;
    IF expiry IS NOT NULL THEN
        INSERT INTO holdfast.expiring (expires_at, id) VALUES (expiry, wanted);
    END IF;
    PERFORM holdfast.put_back(
        wanted, coalesce(e.rank, t.rank), r.lane, r.attempt, r.flags, t.lock_key, expiry, due,
        state = 'retrying', at
    );
    RETURN true;
END $$;

-- Where a task goes that will be started again: it waits, or stands in line for its lock or for a
-- worker.
CREATE FUNCTION holdfast.put_back(
    wanted uuid, rank bigint, lane integer, attempt integer, flags smallint, lock_key text,
    expires_at bigint, due bigint, is_retrying boolean, at bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF due > at THEN
        INSERT INTO holdfast.waiting VALUES (
            wanted, rank, due, lane, attempt, flags, is_retrying, expires_at
        );
        INSERT INTO holdfast.tally VALUES ('waiting', lane, 1);
        IF is_retrying THEN
            INSERT INTO holdfast.tally VALUES ('retrying', 0, 1);
        END IF;
    ELSIF lock_key IS NOT NULL THEN
        INSERT INTO holdfast.blocked VALUES (
            lock_key, rank, wanted, lane, attempt, flags, expires_at
        );
        INSERT INTO holdfast.tally VALUES ('blocked', lane, 1);
    ELSE
        PERFORM holdfast.line_up(wanted, rank, lane, attempt, flags, expires_at);
        INSERT INTO holdfast.tally VALUES ('ready', lane, 1);
    END IF;
END $$;

-- What the store calls. Plain successes of one worker (`ids`, `attempts`, `results`) and the rest, in
-- arrays of their own; refusals are numbered through, the plain ones first.
CREATE FUNCTION holdfast.save(
    worker text, ids text[], attempts integer[], results bytea[],
    rest_ids text[], rest_attempts integer[], rest_workers text[], states text[], ends text[],
    charges integer[], crash_counts integer[], rest_results bytea[], errors text[],
    delays bigint[], causes text[], reasons text[], now bigint DEFAULT NULL
) RETURNS TABLE (n integer, holder text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    at bigint := holdfast.now_us(save.now);
    size integer := coalesce(cardinality(ids), 0);
BEGIN
    IF size > 0 AND holdfast.complete(worker, ids, attempts, results, at) < size THEN
        RETURN QUERY
        SELECT s.n, s.holder
        FROM holdfast.settle(
            ids, attempts, array_fill(worker, ARRAY[size]), array_fill('completed'::text, ARRAY[size]),
            array_fill('completed'::text, ARRAY[size]), array_fill(0, ARRAY[size]),
            array_fill(0, ARRAY[size]), results, NULL, array_fill(0::bigint, ARRAY[size]), NULL, NULL,
            at
        ) AS s;
    END IF;
    IF rest_ids IS NOT NULL THEN
        RETURN QUERY
        SELECT s.n + size, s.holder
        FROM holdfast.settle(
            rest_ids, rest_attempts, rest_workers, states, ends, charges, crash_counts,
            rest_results, errors, delays, causes, reasons, at
        ) AS s;
    END IF;
END $$;

-- What running attempts want stored before they end. Answers the stale ones, as `save` does.
CREATE FUNCTION holdfast.report(
    ids text[], attempts integer[], workers text[], progress text[], units double precision[],
    tokens_in bigint[], tokens_out bigint[], logs text[], now bigint DEFAULT NULL
) RETURNS TABLE (n integer, holder text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_variable
DECLARE
    at bigint := holdfast.now_us(report.now);
    s record;
    flags smallint;
BEGIN
    FOR s IN
        SELECT g.*
        FROM unnest(ids, attempts, workers, progress, units, tokens_in, tokens_out, logs)
        WITH ORDINALITY AS g (
            task_id, attempt, worker, progress, units, tokens_in, tokens_out, logs, n
        )
        ORDER BY g.task_id, g.n
    LOOP
        SELECT r.flags INTO flags
        FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
        WHERE r.id = s.task_id::uuid AND r.attempt = s.attempt AND w.id = s.worker
        FOR UPDATE OF r;
        IF NOT FOUND THEN
            INSERT INTO holdfast.tally VALUES ('refused', 0, 1);
            n := s.n;
            holder := holdfast.holder_of(s.task_id::uuid);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF s.progress IS NOT NULL OR s.units IS NOT NULL THEN
            INSERT INTO holdfast.extra AS old (id, progress, cost_units, tokens_in, tokens_out)
            VALUES (
                s.task_id::uuid, s.progress, coalesce(s.units, 0), coalesce(s.tokens_in, 0),
                coalesce(s.tokens_out, 0)
            )
            ON CONFLICT (id) DO UPDATE SET
                progress = coalesce(excluded.progress, old.progress),
                cost_units = old.cost_units + excluded.cost_units,
                tokens_in = old.tokens_in + excluded.tokens_in,
                tokens_out = old.tokens_out + excluded.tokens_out;
            IF flags & 4 = 0 THEN
                UPDATE holdfast.run AS r SET flags = r.flags | 4::smallint
                WHERE r.id = s.task_id::uuid;
            END IF;
        END IF;
        INSERT INTO holdfast.event (id, at, kind, attempt, worker_id, detail)
        SELECT s.task_id::uuid, at, 'log', s.attempt, s.worker, line.text
        FROM json_array_elements_text(s.logs::json) WITH ORDINALITY AS line (text, n) ORDER BY line.n;
    END LOOP;
END $$;

-- What operators do to many tasks at once, and what the pruner does.

-- End or ask to stop those of these tasks that show one of these states; answers which.
CREATE FUNCTION holdfast.cancel(ids text[], states text[], now bigint DEFAULT NULL) RETURNS text[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    at bigint := holdfast.now_us(cancel.now);
    asked uuid[] := '{}';
    ended uuid[] := '{}';
BEGIN
    -- A task may be on its way from one place to another: who was missed at first is looked for
    -- once more.
    FOR round IN 1 .. 2 LOOP
        IF 'running' = ANY (states) THEN
            asked := asked || holdfast.ask_to_stop(ids::uuid[], at);
        END IF;
        ended := ended || holdfast.end_idle(
            ARRAY(SELECT unnest(ids::uuid[]) EXCEPT SELECT unnest(asked || ended)),
            'cancelled', at, states
        );
        EXIT WHEN cardinality(asked) + cardinality(ended) = cardinality(ids);
    END LOOP;
    RETURN (asked || ended)::text[];
END $$;

CREATE FUNCTION holdfast.ask_to_stop(ids uuid[], at bigint) RETURNS uuid[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    r holdfast.run;
    asked uuid[] := '{}';
BEGIN
    FOR r IN SELECT run.* FROM holdfast.run WHERE run.id = ANY (ids) ORDER BY run.id FOR UPDATE LOOP
        INSERT INTO holdfast.extra AS old (id, cancel_requested) VALUES (r.id, true)
        ON CONFLICT (id) DO UPDATE SET cancel_requested = true WHERE NOT old.cancel_requested;
        CONTINUE WHEN NOT FOUND;
        UPDATE holdfast.run SET flags = run.flags | 4::smallint WHERE run.id = r.id;
        INSERT INTO holdfast.stop (worker, id) VALUES (r.worker, r.id);
        INSERT INTO holdfast.event (id, at, kind) VALUES (r.id, ask_to_stop.at, 'cancel_requested');
        asked := asked || r.id;
    END LOOP;
    RETURN asked;
END $$;

-- Start tasks again; answers which. `number` is how many this call has started before; with `pace`
-- (microseconds apart) each waits its turn. `head_starts`: microseconds by priority.
CREATE FUNCTION holdfast.requeue(
    ids text[], states text[], head_starts json, pace double precision, number integer,
    now bigint DEFAULT NULL
) RETURNS text[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    at bigint := holdfast.now_us(requeue.now);
    locks text[];
    t record;
    due bigint;
    count integer := number;
    started text[] := '{}';
BEGIN
    PERFORM 1 FROM holdfast.done WHERE done.id = ANY (ids::uuid[]) ORDER BY done.id FOR UPDATE;
    locks := ARRAY(
        SELECT task.lock_key FROM holdfast.task
        WHERE task.id = ANY (ids::uuid[]) AND task.lock_key IS NOT NULL
    );
    IF locks <> '{}' THEN
        PERFORM holdfast.hold_locks(locks);
    END IF;
    FOR t IN
        SELECT task.*, coalesce(e.rank, task.rank) AS present_rank, lane.priority
        FROM holdfast.task
        JOIN holdfast.lane ON lane.id = task.lane
        LEFT JOIN holdfast.extra AS e ON e.id = task.id
        WHERE task.id = ANY (ids::uuid[]) ORDER BY task.id
    LOOP
        due := at + CASE WHEN pace IS NULL THEN 0 ELSE round((count + 1) * pace)::bigint END;
        IF 'retrying' = ANY (states) AND holdfast.hurry(
            t.id, t.lane, t.present_rank, t.lock_key, due, at
        ) OR holdfast.renew(
            t.id, t.lane, t.name, t.unique_key, t.lock_key, due - (head_starts ->> t.priority)::bigint,
            due, at, states
        ) THEN
            count := count + 1;
            started := started || t.id::text;
        END IF;
    END LOOP;
    IF locks <> '{}' THEN
        PERFORM holdfast.settle_locks(locks);
    END IF;
    RETURN started;
END $$;

-- Make a task that waits for another attempt eligible at that instant.
CREATE FUNCTION holdfast.hurry(
    wanted uuid, lane integer, rank bigint, lock_key text, due bigint, at bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    w holdfast.waiting;
BEGIN
    DELETE FROM holdfast.waiting AS old WHERE old.id = wanted AND old.retrying
    RETURNING old.* INTO w;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE holdfast.extra SET run_at = due WHERE extra.id = wanted;
    INSERT INTO holdfast.tally VALUES ('waiting', hurry.lane, -1), ('retrying', 0, -1);
    PERFORM holdfast.put_back(
        wanted, hurry.rank, hurry.lane, w.attempt, w.flags, hurry.lock_key, w.expires_at, due, true,
        at
    );
    RETURN true;
END $$;

-- Start an ended task from the beginning, unless another has its unique key.
CREATE FUNCTION holdfast.renew(
    wanted uuid, lane integer, name text, unique_key text, lock_key text, rank bigint, due bigint,
    at bigint, states text[]
) RETURNS boolean
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    d holdfast.done;
    e holdfast.extra;
BEGIN
    IF unique_key IS NOT NULL THEN
        IF NOT EXISTS (
            SELECT 1 FROM holdfast.done AS old WHERE old.id = wanted AND old.state::text = ANY (states)
        ) THEN
            RETURN false;
        END IF;
        INSERT INTO holdfast.unique_key AS u (name, key, id) VALUES (name, unique_key, wanted)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    DELETE FROM holdfast.done AS old WHERE old.id = wanted AND old.state::text = ANY (states)
    RETURNING old.* INTO d;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT * INTO e FROM holdfast.extra AS old WHERE old.id = wanted;
    IF d.ended IS NOT NULL THEN
        INSERT INTO holdfast.attempt (
            id, number, cause, worker, started_at, ended_at, ended, charged, error
        )
        VALUES (
            wanted, d.attempt, coalesce(e.cause, 'submitted'), d.worker, d.started_at,
            d.finished_at, d.ended, coalesce(d.charged, false), d.error
        );
    END IF;
    INSERT INTO holdfast.extra AS old (
        id, rank, run_at, has_no_expiry, cause, started_at, worker, fence
    )
    VALUES (wanted, rank, due, true, 'operator', d.started_at, d.worker, d.fence)
    ON CONFLICT (id) DO UPDATE SET
        rank = excluded.rank, run_at = excluded.run_at, has_no_expiry = true, charged = 0,
        crash_count = 0, cause = 'operator', started_at = excluded.started_at,
        worker = excluded.worker, fence = excluded.fence, error = NULL, reason = NULL,
        result = NULL, progress = NULL, cancel_requested = false;
    INSERT INTO holdfast.event (id, at, kind) VALUES (wanted, renew.at, 'requeued');
    INSERT INTO holdfast.tally VALUES (d.state::text, d.finished_at / 1000000, -1);
    PERFORM holdfast.put_back(
        wanted, rank, lane, d.attempt,
        ((lock_key IS NOT NULL)::integer + (unique_key IS NOT NULL)::integer * 2 + 4)::smallint,
        lock_key, NULL, due, false, at
    );
    RETURN true;
END $$;

-- Drop ended tasks and all that hangs on them; answers how many. Whoever comes second finds them gone.
CREATE FUNCTION holdfast.forget(ids uuid[], states text[]) RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    gone uuid[];
BEGIN
    WITH mine AS (
        SELECT d.id FROM holdfast.done AS d
        WHERE d.id = ANY (ids) AND d.state::text = ANY (states)
        ORDER BY d.id FOR UPDATE SKIP LOCKED
    ), dropped AS (
        DELETE FROM holdfast.done AS d USING mine WHERE d.id = mine.id
        RETURNING d.id, d.state, d.finished_at
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT d.state::text, d.finished_at / 1000000, -count(*) FROM dropped AS d GROUP BY 1, 2
    )
    SELECT array_agg(d.id) INTO gone FROM dropped AS d;
    IF gone IS NULL THEN
        RETURN 0;
    END IF;
    WITH dropped AS (
        DELETE FROM holdfast.task AS t WHERE t.id = ANY (gone) RETURNING t.id, t.idempotency_key
    )
    DELETE FROM holdfast.idempotency AS i USING dropped AS d
    WHERE d.idempotency_key IS NOT NULL AND i.key = d.idempotency_key AND i.id = d.id;
    DELETE FROM holdfast.extra AS x WHERE x.id = ANY (gone);
    DELETE FROM holdfast.attempt AS x WHERE x.id = ANY (gone);
    DELETE FROM holdfast.event AS x WHERE x.id = ANY (gone);
    RETURN cardinality(gone);
END $$;

CREATE FUNCTION holdfast.discard(ids text[], states text[]) RETURNS bigint
LANGUAGE sql
AS $$ SELECT holdfast.forget(discard.ids::uuid[], discard.states) $$;

-- Forget what ended long ago, row by row, `max` at most; and what has no task any more.
CREATE FUNCTION holdfast.prune(
    retention bigint, dead_letter_retention bigint, max integer, now bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
    at bigint := holdfast.now_us(prune.now);
    oldest bigint := at - prune.retention;
    old uuid[];
    gone bigint;
BEGIN
    -- Locked where they are found, so that of two pruners each has its own.
    old := ARRAY(
        SELECT ended.id
        FROM (
            SELECT d.id FROM holdfast.done AS d
            WHERE d.finished_at < oldest AND d.state <> 'dead_letter'
            LIMIT max FOR UPDATE SKIP LOCKED
        ) AS ended
        UNION ALL
        SELECT dead.id
        FROM (
            SELECT d.id FROM holdfast.done AS d
            WHERE d.finished_at < at - prune.dead_letter_retention AND d.state = 'dead_letter'
            LIMIT max FOR UPDATE SKIP LOCKED
        ) AS dead
        LIMIT max
    );
    gone := holdfast.forget(old, ARRAY['completed', 'failed', 'cancelled', 'dead_letter']);
    DELETE FROM holdfast.idempotency AS i WHERE i.key IN (
        SELECT used_up.key FROM holdfast.idempotency AS used_up
        WHERE used_up.expires_at <= at LIMIT greatest(max, 1000) FOR UPDATE SKIP LOCKED
    );
    UPDATE holdfast.worker AS w SET forgotten = true
    WHERE w.status NOT IN ('active', 'draining') AND w.beat_at < oldest AND NOT w.forgotten;
    PERFORM holdfast.fold_tally(at);
    RETURN gone;
END $$;

-- Workers and queues.

CREATE FUNCTION holdfast.register(
    worker text, host text, pid integer, version text, queues text[], capabilities text[],
    capacity integer, load integer, status text, beats bigint, now bigint DEFAULT NULL
) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.worker (
        id, host, pid, version, queues, capabilities, capacity, load, status, beats, started_at,
        beat_at
    )
    SELECT
        register.worker, register.host, register.pid, register.version, register.queues,
        register.capabilities, register.capacity, register.load, register.status, register.beats,
        at, at
    FROM holdfast.now_us(register.now) AS at
    ON CONFLICT (id) DO NOTHING
$$;

CREATE FUNCTION holdfast.beat(worker text, load integer, status text, now bigint DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.worker AS w
    SET beats = w.beats + 1, beat_at = holdfast.now_us(beat.now),
        load = coalesce(beat.load, w.load), status = coalesce(beat.status, w.status)
    WHERE w.id = beat.worker AND w.status IN ('active', 'draining');
    RETURN FOUND;
END $$;

CREATE FUNCTION holdfast.bury(worker text, beats bigint) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.worker AS w SET status = 'dead'
    WHERE w.id = bury.worker AND w.status IN ('active', 'draining')
    AND w.beats = coalesce(bury.beats, w.beats);
    RETURN FOUND;
END $$;

CREATE FUNCTION holdfast.retire(worker text) RETURNS void
LANGUAGE sql
AS $$
    UPDATE holdfast.worker AS w SET status = 'stopped'
    WHERE w.id = retire.worker AND w.status IN ('active', 'draining')
$$;

-- The running tasks of workers that are gone. Usually there is no such worker that might have any,
-- and nothing is looked at. A worker is done with once nothing of it is found: a claim locks the row
-- of its worker, so whoever made it `dead` or `stopped` has waited for the last one.
CREATE FUNCTION holdfast.orphans(max integer) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    gone integer[] := ARRAY(
        SELECT w.number FROM holdfast.worker AS w
        WHERE w.status NOT IN ('active', 'draining') AND NOT w.settled_up
    );
    found text[];
BEGIN
    IF gone = '{}' THEN
        RETURN '{}';
    END IF;
    found := ARRAY(
        SELECT r.id::text FROM holdfast.run AS r WHERE r.worker = ANY (gone)
        ORDER BY r.id LIMIT greatest(max, 0)
    );
    IF found = '{}' AND max > 0 THEN
        UPDATE holdfast.worker AS w SET settled_up = true
        WHERE w.number = ANY (gone)
        AND NOT EXISTS (SELECT 1 FROM holdfast.run AS r WHERE r.worker = ANY (gone));
    END IF;
    RETURN found;
END $$;

CREATE FUNCTION holdfast.pause(queue text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.paused_queue VALUES (pause.queue) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

CREATE FUNCTION holdfast.resume(queue text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM holdfast.paused_queue AS p WHERE p.queue = resume.queue;
    RETURN FOUND;
END $$;

-- The one-row picture of a task.

-- As the store reads it. Every part is looked up by the key it is found under, whatever the planner
-- thinks of the sizes of tables.
CREATE VIEW holdfast.picture AS
SELECT
    task.id, task.name, task.lane, task.payload, task.created_at, task.max_retries, task.timeout,
    task.retry, task.unique_key, task.idempotency_key, task.lock_key, task.tags, task.owner,
    task.trace, task.parent_id,
    CASE
        WHEN done.id IS NOT NULL THEN done.state::text
        WHEN run.id IS NOT NULL THEN 'running'
        WHEN waiting.id IS NOT NULL THEN CASE WHEN waiting.retrying THEN 'retrying' ELSE 'queued' END
        WHEN blocked.id IS NOT NULL THEN 'blocked'
        ELSE 'queued'
    END AS state,
    CASE
        WHEN done.id IS NOT NULL THEN 'done'
        WHEN run.id IS NOT NULL THEN 'running'
        WHEN waiting.id IS NOT NULL THEN 'waiting'
        WHEN blocked.id IS NOT NULL THEN 'blocked'
        WHEN ready.id IS NOT NULL THEN 'ready'
    END AS place,
    coalesce(extra.rank, task.rank) AS rank,
    coalesce(extra.run_at, task.run_at) AS run_at,
    CASE WHEN NOT coalesce(extra.has_no_expiry, false) THEN task.expires_at END AS expires_at,
    coalesce(done.attempt, run.attempt, waiting.attempt, blocked.attempt, ready.attempt, 0)
    AS attempt,
    coalesce(extra.charged, 0) AS charged,
    coalesce(extra.crash_count, 0) AS crash_count,
    coalesce(extra.cause, 'submitted') AS cause,
    coalesce(done.started_at, run.started_at, extra.started_at) AS started_at,
    done.finished_at,
    (
        SELECT worker.id FROM holdfast.worker
        WHERE worker.number = coalesce(done.worker, run.worker, extra.worker)
    ) AS worker_id,
    CASE WHEN run.id IS NOT NULL THEN run.fence ELSE coalesce(done.fence, extra.fence) END AS fence,
    CASE WHEN done.id IS NOT NULL THEN done.result ELSE extra.result END AS result,
    CASE WHEN done.id IS NOT NULL THEN done.error ELSE extra.error END AS error,
    CASE WHEN done.id IS NOT NULL THEN done.reason ELSE extra.reason END AS reason,
    done.ended, coalesce(done.charged, false) AS ended_charged,
    extra.progress,
    coalesce(extra.cost_units, 0) AS cost_units,
    coalesce(extra.tokens_in, 0) AS tokens_in,
    coalesce(extra.tokens_out, 0) AS tokens_out,
    coalesce(extra.cancel_requested, false) AS cancel_requested
FROM holdfast.task
LEFT JOIN LATERAL (SELECT * FROM holdfast.done AS d WHERE d.id = task.id LIMIT 1) AS done ON true
LEFT JOIN LATERAL (SELECT * FROM holdfast.run AS r WHERE r.id = task.id LIMIT 1) AS run ON true
LEFT JOIN LATERAL (SELECT * FROM holdfast.extra AS e WHERE e.id = task.id LIMIT 1) AS extra ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.waiting AS w WHERE w.id = task.id LIMIT 1
) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.blocked AS b
    WHERE b.lock_key = task.lock_key AND b.rank = coalesce(extra.rank, task.rank)
    AND b.id = task.id LIMIT 1
) AS blocked ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.ready AS r
    WHERE r.lane = task.lane AND r.late IN (false, true)
    AND r.rank = coalesce(extra.rank, task.rank) AND r.id = task.id LIMIT 1
) AS ready ON true;

CREATE FUNCTION holdfast.pictures(ids text[]) RETURNS SETOF holdfast.picture
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY SELECT picture.* FROM holdfast.picture WHERE picture.id = ANY (ids::uuid[]);
END $$;

-- For people: SELECT * FROM holdfast.tasks WHERE state = 'dead_letter'
--
-- One part for each place, so that a query that asks for states looks only where such tasks are, and
-- one that asks for an id finds it by its key. `t` is the task, `e` what only some tasks have.
CREATE VIEW holdfast.tasks AS
SELECT
    p.id, (p.t).name, lane.queue, lane.priority, p.state, p.attempt,
    coalesce((p.e).charged, 0) AS charged, (p.t).max_retries,
    coalesce((p.e).crash_count, 0) AS crash_count,
    holdfast.as_time((p.t).created_at) AS created_at,
    holdfast.as_time(coalesce((p.e).run_at, (p.t).run_at)) AS run_at,
    holdfast.as_time(coalesce(p.started_at, (p.e).started_at)) AS started_at,
    holdfast.as_time(p.finished_at) AS finished_at,
    CASE WHEN NOT coalesce((p.e).has_no_expiry, false)
    THEN holdfast.as_time((p.t).expires_at) END AS expires_at,
    (
        SELECT worker.id FROM holdfast.worker
        WHERE worker.number = coalesce(p.worker, (p.e).worker)
    ) AS worker_id,
    p.reason, p.error::json ->> 0 AS error_type, p.error::json ->> 1 AS error_message,
    holdfast.as_text((p.t).payload) AS payload, holdfast.as_text(p.result) AS result,
    (p.t).unique_key, (p.t).idempotency_key, (p.t).lock_key AS lock,
    coalesce(p.fence, (p.e).fence) AS fence, lane.requires, (p.t).tags, (p.t).owner, (p.t).trace,
    (p.t).parent_id, coalesce((p.e).cancel_requested, false) AS cancel_requested,
    coalesce((p.e).rank, (p.t).rank) AS rank
FROM (
    SELECT
        t.id, t, e, d.state, d.attempt, d.started_at, d.finished_at, d.worker, d.fence, d.result,
        d.error, d.reason
    FROM holdfast.done AS d JOIN holdfast.task AS t ON t.id = d.id
    LEFT JOIN holdfast.extra AS e ON e.id = t.id
    UNION ALL
    SELECT
        t.id, t, e, 'running', r.attempt, r.started_at, NULL, r.worker, r.fence, e.result, e.error,
        e.reason
    FROM holdfast.run AS r JOIN holdfast.task AS t ON t.id = r.id
    LEFT JOIN holdfast.extra AS e ON e.id = t.id
    UNION ALL
    SELECT
        t.id, t, e, CASE WHEN w.retrying THEN 'retrying'::holdfast.state ELSE 'queued' END,
        w.attempt, NULL, NULL, NULL, NULL, e.result, e.error, e.reason
    FROM holdfast.waiting AS w JOIN holdfast.task AS t ON t.id = w.id
    LEFT JOIN holdfast.extra AS e ON e.id = t.id
    UNION ALL
    SELECT t.id, t, e, 'blocked', b.attempt, NULL, NULL, NULL, NULL, e.result, e.error, e.reason
    FROM holdfast.task AS t LEFT JOIN holdfast.extra AS e ON e.id = t.id
    JOIN holdfast.blocked AS b
    ON b.lock_key = t.lock_key AND b.rank = coalesce(e.rank, t.rank) AND b.id = t.id
    UNION ALL
    SELECT t.id, t, e, 'queued', r.attempt, NULL, NULL, NULL, NULL, e.result, e.error, e.reason
    FROM holdfast.task AS t LEFT JOIN holdfast.extra AS e ON e.id = t.id
    JOIN holdfast.ready AS r
    ON r.lane = t.lane AND r.late IN (false, true) AND r.rank = coalesce(e.rank, t.rank)
    AND r.id = t.id
) AS p (
    id, t, e, state, attempt, started_at, finished_at, worker, fence, result, error, reason
)
JOIN holdfast.lane ON lane.id = (p.t).lane;

-- Partitions by day of `task` and `done`, made ahead and dropped when nothing in them is needed.

-- Make those of today and the days after, as far as they are missing; answers how many were. Whoever
-- comes second lets it be. If the default partition has rows for such a day already, it stays with
-- them there: nothing breaks, that day is pruned row by row. If somebody uses the tables for long (a
-- backup), it is left for another time: who waits for that lock makes all others wait.
CREATE FUNCTION holdfast.add_partitions(days integer DEFAULT 3) RETURNS integer
LANGUAGE plpgsql
SET lock_timeout = '200ms'
AS $$
DECLARE
    first date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    day date;
    kind text;
    made integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('holdfast'), 3) THEN
        RETURN 0;
    END IF;
    FOREACH kind IN ARRAY ARRAY['task', 'done'] LOOP
        FOR ahead IN 0 .. days LOOP
            day := first + ahead;
            CONTINUE WHEN to_regclass(format('%I.%I', 'holdfast', kind || to_char(day, '_YYYYMMDD')))
            IS NOT NULL;
            BEGIN
                EXECUTE format(
                    'CREATE TABLE %I.%I PARTITION OF %I.%I FOR VALUES FROM (%L) TO (%L)',
                    'holdfast', kind || to_char(day, '_YYYYMMDD'), 'holdfast', kind,
                    holdfast.first_id(day AT TIME ZONE 'UTC'),
                    holdfast.first_id((day + 1) AT TIME ZONE 'UTC')
                );
                made := made + 1;
            EXCEPTION
                WHEN check_violation THEN NULL;
                WHEN lock_not_available THEN RETURN made;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

-- How many days ahead there is no partition for, tomorrow included.
CREATE FUNCTION holdfast.missing_partitions(days integer DEFAULT 1) RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT count(*)::integer
    FROM generate_series(0, missing_partitions.days) AS ahead
    CROSS JOIN (VALUES ('task'), ('done')) AS parent (kind)
    WHERE to_regclass(format(
        '%I.%I', 'holdfast',
        kind || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + ahead, '_YYYYMMDD')
    )) IS NULL
$$;

-- Drop the oldest day if nearly all in it may go; answers how many tasks went. The few that must stay
-- (they run, wait, or are dead letters kept longer) move to the default partition. Nothing is done,
-- and nobody made to wait for long, if somebody is using the tables just now. A day with few tasks
-- is left to be pruned row by row, until it is empty.
CREATE FUNCTION holdfast.drop_partition(
    retention bigint, dead_letter_retention bigint, now bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql
SET lock_timeout = '200ms'
AS $$
DECLARE
    at bigint := holdfast.now_us(drop_partition.now);
    day text;
    tasks text;
    ends text;
    whole bigint;
    stay uuid[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('holdfast'), 3) THEN
        RETURN 0;
    END IF;
    SELECT min(right(c.relname, 8)) INTO day
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass('holdfast.task') AND c.relname ~ '^task_[0-9]{8}$'
    AND to_date(right(c.relname, 8), 'YYYYMMDD') + 1
        < least(holdfast.as_time(at - drop_partition.retention), clock_timestamp())::date;
    IF day IS NULL OR to_regclass(format('%I.%I', 'holdfast', 'done_' || day)) IS NULL THEN
        RETURN 0;
    END IF;
    tasks := format('%I.%I', 'holdfast', 'task_' || day);
    ends := format('%I.%I', 'holdfast', 'done_' || day);
    EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', tasks, ends);
    EXECUTE format('SELECT count(*) FROM %s', tasks) INTO whole;
    IF whole BETWEEN 1 AND 999 THEN
        RETURN 0;
    END IF;
    EXECUTE format(
        'SELECT array_agg(t.id) FROM (
            SELECT t.id FROM %s AS t LEFT JOIN %s AS d ON d.id = t.id
            WHERE d.id IS NULL OR d.finished_at >= CASE d.state
                WHEN ''dead_letter'' THEN $1 ELSE $2 END
            LIMIT 10001
        ) AS t', tasks, ends
    ) INTO stay USING at - drop_partition.dead_letter_retention, at - drop_partition.retention;
    IF cardinality(stay) > 10000 THEN
        RETURN 0;
    END IF;
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', 'holdfast.task', tasks);
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', 'holdfast.done', ends);
    EXECUTE format(
        'INSERT INTO %s SELECT * FROM %s AS t WHERE t.id = ANY ($1)', 'holdfast.task', tasks
    ) USING stay;
    EXECUTE format(
        'INSERT INTO %s SELECT * FROM %s AS d WHERE d.id = ANY ($1)', 'holdfast.done', ends
    ) USING stay;
    EXECUTE format(
        'INSERT INTO %s SELECT d.state::text, d.finished_at / 1000000, -count(*) FROM %s AS d
        WHERE d.id <> ALL (coalesce($1, ''{}'')) GROUP BY 1, 2', 'holdfast.tally', ends
    ) USING stay;
    EXECUTE format(
        'DELETE FROM %s AS i USING %s AS t WHERE t.idempotency_key IS NOT NULL
        AND i.key = t.idempotency_key AND i.id = t.id AND t.id <> ALL (coalesce($1, ''{}''))',
        'holdfast.idempotency', tasks
    ) USING stay;
    PERFORM holdfast.forget_between(
        holdfast.first_id(to_date(day, 'YYYYMMDD') AT TIME ZONE 'UTC'),
        holdfast.first_id((to_date(day, 'YYYYMMDD') + 1) AT TIME ZONE 'UTC'), stay
    );
    EXECUTE format('DROP TABLE %s, %s', tasks, ends);
    RETURN whole - coalesce(cardinality(stay), 0);
EXCEPTION WHEN lock_not_available THEN
    RETURN 0;
END $$;

-- Forget what only some tasks have, of all tasks with such ids but these.
CREATE FUNCTION holdfast.forget_between(first uuid, past uuid, but uuid[]) RETURNS void
LANGUAGE sql
AS $$
    DELETE FROM holdfast.extra AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.attempt AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.event AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
$$;

-- The store in numbers, at one instant, without counting a backlog.
CREATE FUNCTION holdfast.numbers(now bigint DEFAULT NULL) RETURNS json
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    at bigint := holdfast.now_us(numbers.now);
    counts json;
    oldest json;
BEGIN
    SELECT json_agg(json_build_array(s.kind, s.key, s.n)) INTO counts
    FROM (
        SELECT
            t.kind,
            CASE
                WHEN t.kind NOT IN ('completed', 'failed', 'cancelled', 'dead_letter') THEN t.key
                WHEN t.key > (at - 60000000) / 1000000 THEN 1 ELSE 0
            END AS key,
            sum(t.n)::bigint AS n
        FROM holdfast.tally AS t GROUP BY 1, 2 HAVING sum(t.n) <> 0
    ) AS s;
    -- When the task that waits longest became eligible, by lane. A lane's order is by age, but for
    -- retries, which keep their place and begin to wait anew: so the first hundred are looked at.
    SELECT json_agg(json_build_array(s.lane, at - s.run_at)) INTO oldest
    FROM (
        SELECT lane.id AS lane, min(coalesce(e.run_at, task.run_at)) AS run_at
        FROM holdfast.lane
        LEFT JOIN holdfast.floor ON floor.lane = lane.id
        CROSS JOIN (VALUES (false), (true)) AS late (late)
        CROSS JOIN LATERAL (
            SELECT r.id FROM holdfast.ready AS r
            WHERE r.lane = lane.id AND r.late = late.late
            AND r.rank >= CASE WHEN late.late OR floor.active IS NULL THEN -9223372036854775808
                ELSE floor.active END
            ORDER BY r.rank, r.id LIMIT 100
        ) AS head
        JOIN holdfast.task ON task.id = head.id
        LEFT JOIN LATERAL (SELECT * FROM holdfast.extra AS x WHERE x.id = head.id LIMIT 1) AS e
        ON true
        GROUP BY lane.id
    ) AS s;
    RETURN json_build_object(
        'counts', coalesce(counts, '[]'), 'oldest', coalesce(oldest, '[]'),
        'paused', (SELECT coalesce(json_agg(p.queue), '[]') FROM holdfast.paused_queue AS p)
    );
END $$;

-- How many ready tasks of its queue stand before a ready task, counting up to `cap`.
CREATE FUNCTION holdfast.ahead(queue text, rank bigint, id uuid, cap integer) RETURNS bigint
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM holdfast.lane
            LEFT JOIN holdfast.floor ON floor.lane = lane.id
            CROSS JOIN (VALUES (false), (true)) AS late (late)
            CROSS JOIN LATERAL (
                SELECT 1 FROM holdfast.ready AS r
                WHERE r.lane = lane.id AND r.late = late.late
                AND r.rank >= CASE WHEN late.late OR floor.active IS NULL
                    THEN -9223372036854775808 ELSE floor.active END
                AND (r.rank, r.id) < (ahead.rank, ahead.id)
                LIMIT ahead.cap
            ) AS before
            WHERE lane.queue = ahead.queue
            LIMIT ahead.cap
        ) AS line
    );
END $$;

-- Tasks in somebody's own transaction.
--
--     add_within(tasks json, idempotency_window double precision DEFAULT 86400,
--         now bigint DEFAULT NULL) -> TABLE (position integer, task_id text, outcome text, state text)
--         `add` for a caller who has a transaction to lose: an idempotency conflict is no error but
--         the only row of the answer, with outcome `conflict`, the id of the task that has the key,
--         and the key as its state; nothing of the batch is kept. Sleeping workers are woken when
--         the transaction commits.
--     complete_within(task text, attempt integer, worker text, charged integer,
--         crash_count integer, result bytea, progress text, units double precision,
--         tokens_in bigint, tokens_out bigint, logs text, now bigint DEFAULT NULL) -> void
--         What an attempt said last, and that it succeeded, as the last act of its handler's
--         transaction. Raises HF003 if the attempt is no longer the worker's; the HINT is who has
--         the task now. Without a COMMIT within 5 s the server ends the session: a worker that falls
--         silent just here would otherwise keep everybody from rescuing its task.
--     was_completed(task text, attempt integer, worker text) -> boolean
--         For whoever lost the answer to that COMMIT. Waits until it has happened or cannot happen.

CREATE FUNCTION holdfast.add_within(
    tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL
) RETURNS TABLE ("position" integer, task_id text, outcome text, state text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    key text;
    first text;
BEGIN
    RETURN QUERY
    SELECT * FROM holdfast.add(add_within.tasks, add_within.idempotency_window, add_within.now);
    PERFORM holdfast.wake(ARRAY(
        SELECT DISTINCT coalesce(given.queue, 'default')
        FROM json_to_recordset(add_within.tasks) AS given (queue text)
    ));
EXCEPTION WHEN SQLSTATE 'HF002' THEN
    GET STACKED DIAGNOSTICS key = PG_EXCEPTION_DETAIL, first = PG_EXCEPTION_HINT;
    RETURN QUERY SELECT 0, first, 'conflict', key;
END $$;

CREATE FUNCTION holdfast.complete_within(
    task text, attempt integer, worker text, charged integer, crash_count integer, result bytea,
    progress text, units double precision, tokens_in bigint, tokens_out bigint, logs text,
    now bigint DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', '5s', true);
    PERFORM 1
    FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
    WHERE r.id = task::uuid AND r.attempt = complete_within.attempt
    AND w.id = complete_within.worker
    FOR UPDATE OF r;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'attempt % of task % is no longer the worker''s', attempt, task
        USING ERRCODE = 'HF003', HINT = coalesce(holdfast.holder_of(task::uuid), '');
    END IF;
    IF progress IS NOT NULL OR units IS NOT NULL OR logs IS NOT NULL THEN
        PERFORM holdfast.report(
            ARRAY[task], ARRAY[attempt], ARRAY[worker], ARRAY[progress], ARRAY[units],
            ARRAY[tokens_in], ARRAY[tokens_out], ARRAY[logs], now
        );
    END IF;
    PERFORM holdfast.save(
        NULL, NULL, NULL, NULL,
        ARRAY[task], ARRAY[attempt], ARRAY[worker], ARRAY['completed'], ARRAY['completed'],
        ARRAY[charged], ARRAY[crash_count], ARRAY[result], ARRAY[NULL::text], ARRAY[0::bigint],
        ARRAY[NULL::text], ARRAY[NULL::text], now
    );
END $$;

CREATE FUNCTION holdfast.was_completed(task text, attempt integer, worker text) RETURNS boolean
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    -- Whoever has ended the attempt and not committed yet has its row locked.
    PERFORM 1 FROM holdfast.run AS r
    WHERE r.id = task::uuid AND r.attempt = was_completed.attempt FOR UPDATE;
    RETURN holdfast.was_saved(task::uuid, attempt, worker, 'completed');
END $$;
