-- New tasks.
--
--     add(tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL)
--         -> TABLE (position integer, task_id text, outcome text, state text)
--         For any driver, in the caller's transaction or its own. `tasks` is a JSON array of objects
--         with the fields of `NewTask` (id, name, payload, queue, priority, head_start, delay,
--         run_at, expires_in, expires_at, max_retries, timeout, retry, unique_key, idempotency_key,
--         fingerprint, lock, requires, tags, owner, trace, parent_id, gates, passes, counts). `id`,
--         `name` and `payload` must be there; the payload is a *string* of JSON, kept to the letter;
--         durations are seconds; run_at and expires_at are whole microseconds since 1970 UTC; gates
--         and passes are what `core/gate.py` makes of them. Answers one row per
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
--     add_rows(…arrays…), add_alike(…)
--         What they come to. For the store itself: their arguments may change with any release.

-- All arrays have one element per task; NULL for a whole array means NULL for every task. Durations
-- are microseconds. Answers only for tasks that are not simply new and queued. `gates_later`: tasks
-- with gates wait, though they are due, and stand before the first of them at the next claim. For
-- transactions of others, which may take long: the row of a gate must not be locked meanwhile.
-- `calls`: queues whose sleepers are to be woken by the commit.
CREATE OR REPLACE FUNCTION holdfast.add_rows(
    ids text[], names text[], payloads bytea[], lanes integer[], head_starts bigint[],
    max_retries bigint[], timeouts double precision[], delays bigint[], run_ats bigint[],
    expires_in bigint[], expires_at bigint[], retries text[], unique_keys text[],
    idempotency_keys text[], fingerprints text[], locks text[], owners text[], traces text[],
    parents text[], tags text[], idempotency_window bigint, now bigint DEFAULT NULL,
    gates_later boolean DEFAULT false, calls text[] DEFAULT NULL, callbacks text[] DEFAULT NULL,
    gates text[] DEFAULT NULL, passes text[] DEFAULT NULL, counts text[] DEFAULT NULL
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
    came text[];
    latches text[];
    new uuid[];
BEGIN
    IF unique_keys IS NOT NULL OR idempotency_keys IS NOT NULL THEN
        SELECT * INTO repeats, firsts, outcomes FROM holdfast.take_keys(
            ids::uuid[], names, unique_keys, idempotency_keys, fingerprints,
            at + idempotency_window, at
        );
    END IF;
    IF gates IS NOT NULL AND NOT gates_later THEN
        came := holdfast.announce(gates, repeats);
    END IF;
    WITH given AS (
        SELECT
            g.*,
            coalesce(g.run_at, at + coalesce(g.delay, 0)) AS due_at,
            coalesce(g.expires_at, at + g.expires_in) AS expiry
        FROM unnest(
            ids::uuid[], names, payloads, lanes, head_starts, add_rows.max_retries, timeouts,
            delays, run_ats, add_rows.expires_in, add_rows.expires_at, retries, unique_keys,
            idempotency_keys, locks, owners, traces, parents, add_rows.tags, callbacks,
            add_rows.gates, add_rows.passes, add_rows.counts
        ) WITH ORDINALITY AS g (
            id, name, payload, lane, head_start, max_retries, timeout, delay, run_at, expires_in,
            expires_at, retry, unique_key, idempotency_key, lock_key, owner, trace, parent_id, tags,
            callback, gates, passes, counts, n
        )
        WHERE g.n <> ALL (repeats)
    ), added AS (
        INSERT INTO holdfast.task (
            id, rank, created_at, run_at, lane, max_retries, timeout, expires_at, parent_id, name,
            payload, retry, unique_key, idempotency_key, lock_key, owner, trace, tags,
            callback, gates, passes, counts
        )
        SELECT
            id, due_at - head_start, at, due_at, lane, max_retries, timeout, expiry, parent_id,
            name, payload, retry, unique_key, idempotency_key, lock_key, owner, trace,
            -- No function around these: one with a subquery is not inlined, and takes four times as long.
            CASE WHEN tags IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(tags::json)) END,
            callback, gates,
            CASE WHEN passes IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(passes::json)) END,
            CASE WHEN counts IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(counts::json)) END
        FROM given
        ON CONFLICT (id) DO NOTHING
        RETURNING
            id, rank, lane, run_at, expires_at, holdfast.passes_of(passes, lock_key) AS passes,
            ((lock_key IS NOT NULL)::integer + (unique_key IS NOT NULL)::integer * 2
            + (expires_at IS NOT NULL)::integer * 8
            + CASE WHEN passes IS NOT NULL THEN holdfast.flags_of(passes) ELSE 0 END
            + (counts IS NOT NULL)::integer * 128)::smallint AS flags
    ), lined_up AS (
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
        SELECT
            id, rank, added.lane, 0, flags, all_late OR rank < coalesce(pending, rank), expires_at
        FROM added LEFT JOIN holdfast.floor ON floor.lane = added.lane
        WHERE run_at <= at AND passes IS NULL
    ), put_off AS (
        INSERT INTO holdfast.waiting (id, rank, due_at, lane, attempt, flags, retrying, expires_at)
        SELECT id, rank, run_at, lane, 0, flags, false, expires_at FROM added
        WHERE run_at > at OR gates_later AND passes IS NOT NULL
    ), held_up AS (
        INSERT INTO holdfast.blocked (gate, rank, id, lane, attempt, flags, expires_at, gates)
        SELECT
            passes[1], rank, id, lane, 0, flags, expires_at,
            CASE WHEN cardinality(passes) > 1 THEN passes END
        FROM added WHERE run_at <= at AND passes IS NOT NULL AND NOT gates_later
        RETURNING gate, gates, id
    ), will_expire AS (
        INSERT INTO holdfast.expiring (expires_at, id)
        SELECT expires_at, id FROM added WHERE expires_at IS NOT NULL
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT
            CASE
                WHEN run_at > at OR gates_later AND passes IS NOT NULL THEN 'waiting'
                WHEN passes IS NULL THEN 'ready'
                ELSE 'blocked'
            END,
            lane, count(*)
        FROM added GROUP BY 1, 2
    )
    SELECT
        (SELECT count(*) FROM added), came || (SELECT array_agg(DISTINCT gate) FROM held_up),
        (SELECT array_agg(id) FROM held_up), (
            SELECT array_agg(p.name)
            FROM held_up CROSS JOIN LATERAL unnest(coalesce(gates, ARRAY[gate])) AS p (name)
            WHERE holdfast.kind_of(p.name) = 0
        )
    INTO written, came, new, latches;
    IF latches IS NOT NULL THEN
        PERFORM holdfast.stand_behind(latches);
    END IF;
    IF came IS NOT NULL THEN
        PERFORM holdfast.settle_gates(came, '{}', at, new);
    END IF;
    IF gates IS NOT NULL AND NOT gates_later AND cardinality(ids) > 1 THEN -- of those that it made, the last word counts too
        PERFORM holdfast.settle_gates(holdfast.announce(gates, repeats), '{}', at, new);
    END IF;
    IF calls IS NOT NULL THEN
        PERFORM holdfast.wake(calls);
    END IF;
    IF written < cardinality(ids) OR locks IS NOT NULL OR gates IS NOT NULL THEN
        RETURN QUERY SELECT a.* FROM holdfast.answers(
            ids::uuid[], locks, gates, repeats, firsts, outcomes,
            written + cardinality(repeats) < cardinality(ids)
        ) AS a;
    END IF;
END $$;

-- What flags say of gates beside a lock: that there are some, a rate, several of one kind.
CREATE OR REPLACE FUNCTION holdfast.flags_of(passes text[]) RETURNS integer
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF cardinality(passes) = 1 THEN
        RETURN 32 + 256 * (holdfast.kind_of(passes[1]) = 5)::integer;
    END IF;
    RETURN (
        SELECT
            32 + 256 * bool_or(holdfast.kind_of(p) = 5)::integer
            + 512 * (count(*) > count(DISTINCT holdfast.kind_of(p)))::integer
        FROM unnest(passes) AS p
    );
END $$;

-- New tasks say how many may pass their gates, the last of them for all; answers the gates that this
-- changes. Repeats say nothing.
CREATE OR REPLACE FUNCTION holdfast.announce(gates text[], repeats integer[]) RETURNS text[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    changed text[];
BEGIN
    WITH said AS (
        SELECT DISTINCT ON (s.name) s.*
        FROM unnest(announce.gates) WITH ORDINALITY AS g (gates, n)
        CROSS JOIN LATERAL holdfast.specs_of(g.gates) AS s
        WHERE g.gates IS NOT NULL AND g.n <> ALL (repeats) AND holdfast.kind_of(s.name) > 0
        ORDER BY s.name, g.n DESC
    ), written AS (
        INSERT INTO holdfast.gate AS g (name, capacity, period)
        SELECT s.name, s.capacity, s.period
        FROM said AS s CROSS JOIN LATERAL (
            SELECT gate.capacity, gate.period FROM holdfast.gate WHERE gate.name = s.name OFFSET 0
        ) AS old
        WHERE (old.capacity, old.period) <> (s.capacity, s.period)
        ORDER BY holdfast.kind_of(s.name), s.name
        ON CONFLICT (name) DO UPDATE SET capacity = excluded.capacity, period = excluded.period
        RETURNING g.name
    )
    SELECT array_agg(w.name) INTO changed FROM written AS w;
    RETURN changed;
END $$;

-- The usual case, at a third of the cost: tasks that are ready at once, have no keys and differ in
-- nothing but id and payload. A known id fails (unique_violation); then `add_rows` has the answer.
CREATE OR REPLACE FUNCTION holdfast.add_alike(
    ids uuid[], payloads bytea[], name text, lane integer, head_start bigint, max_retries bigint,
    timeout double precision, retry text, owner text, trace text, parent text,
    calls text[] DEFAULT NULL, now bigint DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_variable
DECLARE
    at bigint := holdfast.now_us(now);
    rank bigint := at - head_start;
    late boolean := pg_current_xact_id() IS NULL -- as in `add_rows`
        OR current_setting('transaction_isolation') <> 'read committed';
BEGIN
    late := late OR coalesce(
        rank < (SELECT f.pending FROM holdfast.floor AS f WHERE f.lane = add_alike.lane), false
    );
    IF cardinality(ids) = 1 THEN -- a tenth quicker, for those who wait for a single one
        INSERT INTO holdfast.task (
            id, rank, created_at, run_at, lane, max_retries, timeout, parent_id, name, payload,
            retry, owner, trace
        ) VALUES (
            ids[1], rank, at, at, lane, max_retries, timeout, parent, name, payloads[1],
            retry, owner, trace
        );
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late)
        VALUES (ids[1], rank, lane, 0, 0, late);
    ELSE
        INSERT INTO holdfast.task (
            id, rank, created_at, run_at, lane, max_retries, timeout, parent_id, name, payload,
            retry, owner, trace
        )
        SELECT
            g.id, rank, at, at, lane, max_retries, timeout, parent, name, g.payload,
            retry, owner, trace
        FROM unnest(ids, payloads) AS g (id, payload);
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late)
        SELECT g.id, rank, lane, 0, 0, late FROM unnest(ids) AS g (id);
    END IF;
    INSERT INTO holdfast.tally (kind, key, n) VALUES ('ready', lane, cardinality(ids));
    IF calls IS NOT NULL THEN
        PERFORM holdfast.wake(calls);
    END IF;
END $$;

-- The answers that are not simply "created, queued". `some_known`: some ids were there before.
CREATE OR REPLACE FUNCTION holdfast.answers(
    ids uuid[], locks text[], gates text[], repeats integer[], firsts uuid[], outcomes text[],
    some_known boolean
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
                WHEN given.gates IS NOT NULL THEN CASE WHEN EXISTS (
                    SELECT 1
                    FROM (
                        SELECT task.id, task.rank, task.passes FROM holdfast.task
                        WHERE task.id = given.id OFFSET 0
                    ) AS t
                    CROSS JOIN LATERAL (
                        SELECT 1 FROM holdfast.blocked AS b
                        WHERE b.gate = ANY (t.passes) AND b.rank = t.rank AND b.id = t.id LIMIT 1
                    ) AS there
                ) THEN 'blocked' ELSE 'queued' END
                WHEN given.lock_key IS NULL
                OR EXISTS (SELECT 1 FROM holdfast.waiting AS w WHERE w.id = given.id)
                OR EXISTS (
                    SELECT 1 FROM holdfast.gate AS g
                    WHERE g.name = 'lock:' || given.lock_key AND g.holder = given.id
                ) THEN 'queued'
                ELSE 'blocked'
            END AS state
        FROM unnest(ids, locks, gates) WITH ORDINALITY AS given (id, lock_key, gates, n)
        LEFT JOIN unnest(repeats, firsts, outcomes) AS repeat (n, id, outcome)
        ON repeat.n = given.n
    ) AS answer
    WHERE answer.outcome <> 'created' OR answer.state <> 'queued';
END $$;

CREATE OR REPLACE FUNCTION holdfast.add(
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
            owner text, trace text, parent_id text, callback text, gates text, passes json,
            counts json
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
            array_agg(callback ORDER BY n) AS callbacks,
            array_agg(gates ORDER BY n) AS gates,
            array_agg(passes::text ORDER BY n) AS passes,
            array_agg(counts::text ORDER BY n) AS counts,
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
            holdfast.as_us(add.idempotency_window), add.now, true, NULL, c.callbacks,
            holdfast.or_null(c.gates), c.passes, c.counts
        ) AS answer
        WHERE c.ids IS NOT NULL
    ) AS answer ON answer.n = given.n
    ORDER BY given.n
$$;

CREATE OR REPLACE FUNCTION holdfast.submit(
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
        'unique_key', holdfast.stored_key(owner, unique_key),
        'idempotency_key', holdfast.stored_key(owner, idempotency_key),
        'fingerprint', CASE WHEN idempotency_key IS NOT NULL THEN md5(name || ' ' || payload) END,
        'lock', lock, 'requires', requires, 'tags', tags, 'owner', owner
    )));
    PERFORM holdfast.wake(ARRAY[queue]);
    RETURN answer;
END $$;
