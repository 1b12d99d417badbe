-- Claims.
--
-- A *stream* is one lane's line (`late` or not). Most claims find work in a single stream and walk
-- its index from the head; with several, `take_merged` keeps the order by (rank, id) exact across
-- them. Rows that another claim has locked are passed over, so claimers never wait for each other.
--
-- What is claimed comes in groups, a row each: tasks that differ in nothing but id, rank and payload.
-- Mostly that is all of them, and three arrays are read much quicker than a thousand rows. The first
-- row is no group; its one rank says in how many microseconds the next task will be due.

CREATE OR REPLACE FUNCTION holdfast.claim_groups(
    worker text, queues text[], capabilities text[], max integer, now bigint DEFAULT NULL
) RETURNS TABLE (
    ids text[], ranks bigint[], payloads bytea[], lane integer, attempt integer, name text,
    max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint,
    trace text, owner text, charged integer, crash_count integer, cause text
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(claim_groups.now);
    me integer;
    has_expired boolean;
    eligible integer[];
    next_due bigint;
    lanes integer[];
    lates boolean[];
    heads bigint[];
    rows tid[];
    flags smallint; -- of any of them
    one record;
BEGIN
    -- The worker's row is locked until the claim is committed, so that nobody buries it meanwhile:
    -- what it has started would never be looked for. (A heartbeat waits as long.)
    SELECT
        w.number, EXISTS (SELECT 1 FROM holdfast.expiring WHERE expires_at <= at),
        ARRAY(
            SELECT lane.id FROM holdfast.lane
            WHERE (claim_groups.queues IS NULL OR queue = ANY (claim_groups.queues))
            AND requires <@ claim_groups.capabilities -- not what the worker registered with
            AND NOT EXISTS (
                SELECT 1 FROM holdfast.record AS p WHERE p.kind = 'pause' AND p.key = lane.queue
            )
        )
    INTO me, has_expired, eligible
    FROM holdfast.worker AS w
    WHERE w.id = claim_groups.worker AND w.status IN ('active', 'draining') FOR SHARE;
    IF me IS NULL THEN
        RAISE EXCEPTION 'worker % is gone', claim_groups.worker USING ERRCODE = 'HF001';
    END IF;
    IF has_expired THEN
        PERFORM holdfast.end_expired(at);
    END IF;
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

    claim_groups.ranks := ARRAY[next_due]; -- the first row is no task
    IF lanes IS NULL OR max <= 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF cardinality(lanes) = 1 THEN
        SELECT array_agg(first.ctid), bit_or(first.flags) INTO rows, flags
        FROM (
            SELECT r.ctid, r.flags FROM holdfast.ready AS r
            WHERE r.lane = lanes[1] AND r.late = lates[1] AND r.rank >= heads[1]
            AND (r.expires_at IS NULL OR r.expires_at > at)
            ORDER BY r.rank, r.id LIMIT max
            FOR UPDATE SKIP LOCKED
        ) AS first;
    ELSE
        SELECT * INTO rows, flags FROM holdfast.take_merged(lanes, lates, heads, max, at);
    END IF;

    -- Read again: what was let go of since `at` may be among the rows, and must not seem to start
    -- before the task that held its lock, or its own last attempt, has ended.
    at := holdfast.now_us(claim_groups.now);
    IF flags & 256 <> 0 THEN
        SELECT c.kept, ARRAY[least(next_due, c.look_in)] INTO rows, claim_groups.ranks
        FROM holdfast.count_starts(rows, at) AS c;
    END IF;
    RETURN NEXT;
    IF flags <> 0 THEN
        RETURN QUERY SELECT * FROM holdfast.start_groups(rows, me, at);
    ELSIF cardinality(rows) = 1 THEN
        -- What a sleeping worker is woken for. Without the joins below, which look into every
        -- partition of `task`.
        DELETE FROM holdfast.ready AS r WHERE r.ctid = rows[1]
        RETURNING r.id, r.rank, r.lane, r.attempt + 1 AS attempt INTO one;
        INSERT INTO holdfast.run (id, started_at, lane, attempt, worker, flags)
        VALUES (one.id, at, one.lane, one.attempt, me, 0);
        INSERT INTO holdfast.tally (kind, key, n)
        VALUES ('ready', one.lane, -1), ('running', one.lane, 1);
        RETURN QUERY SELECT
            ARRAY[task.id::text], ARRAY[one.rank], ARRAY[task.payload], one.lane, one.attempt,
            task.name,
            task.max_retries, task.timeout, task.retry, task.lock_key, NULL::bigint, task.trace,
            task.owner, 0, 0, 'submitted'
        FROM holdfast.task WHERE task.id = one.id;
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
            array_agg(task.id::text), array_agg(taken.rank), array_agg(task.payload), taken.lane,
            taken.attempt, task.name, task.max_retries, task.timeout, task.retry, task.lock_key,
            NULL::bigint, task.trace, task.owner, 0, 0, 'submitted'
        FROM taken CROSS JOIN LATERAL (
            SELECT t.* FROM holdfast.task AS t WHERE t.id = taken.id OFFSET 0
        ) AS task
        GROUP BY
            taken.lane, taken.attempt, task.name, task.max_retries, task.timeout, task.retry,
            task.lock_key, task.trace, task.owner,
            -- An array has room for 1 GB.
            CASE WHEN octet_length(task.payload) > 10000 THEN taken.id END;
    END IF;
    IF cardinality(rows) >= 10 OR random() < 0.02 THEN -- a few rows leave little to walk over
        PERFORM holdfast.raise_floors(lanes, lates, heads);
    END IF;
END $$;

-- The first rows of several streams, merged by (rank, id). A part of each stream is looked at; up to
-- the smallest end of a part that was cut off, the order is known. Those rows are locked, stream by
-- stream; if that were too few, the next parts follow, larger.
CREATE OR REPLACE FUNCTION holdfast.take_merged(
    lanes integer[], lates boolean[], heads bigint[], max integer, at bigint,
    OUT rows tid[], OUT flags smallint
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
    more_flags smallint;
BEGIN
    rows := '{}';
    flags := 0;
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
        SELECT array_agg(first.ctid), bit_or(first.flags) INTO more, more_flags
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
        flags := flags | coalesce(more_flags, 0::smallint);
        EXIT WHEN cardinality(rows) >= max;
        from_rank := array_fill(until_rank, ARRAY[cardinality(lanes)]);
        from_id := array_fill(until_id, ARRAY[cardinality(lanes)]);
        part := part * 2;
    END LOOP;
END $$;

-- Count the starts of these rows' tasks that have a rate. Those whose rate somebody has locked just now
-- are left out: nobody waits for another here. `look_in`: when to claim again, in microseconds.
CREATE OR REPLACE FUNCTION holdfast.count_starts(rows tid[], at bigint, OUT kept tid[], OUT look_in bigint)
LANGUAGE plpgsql
AS $$
DECLARE
    wanted tid[];
    names text[];
    held text[];
BEGIN
    SELECT array_agg(r.ctid), array_agg(p.name) INTO wanted, names
    FROM holdfast.ready AS r
    CROSS JOIN LATERAL (SELECT t.passes FROM holdfast.task AS t WHERE t.id = r.id OFFSET 0) AS t
    CROSS JOIN LATERAL unnest(t.passes) AS p (name)
    WHERE r.ctid = ANY (rows) AND r.flags & 256 <> 0 AND holdfast.kind_of(p.name) = 5;
    held := ARRAY(
        SELECT g.name FROM holdfast.gate AS g WHERE g.name = ANY (names)
        ORDER BY g.name FOR UPDATE SKIP LOCKED
    );
    kept := ARRAY(
        SELECT r FROM unnest(rows) AS r WHERE r NOT IN (
            SELECT w.row FROM unnest(wanted, names) AS w (row, name) WHERE w.name <> ALL (held)
        )
    );
    WITH begun AS (
        SELECT w.name, count(*) AS n FROM unnest(wanted, names) AS w (row, name)
        WHERE w.row IN (SELECT unnest(kept)) GROUP BY w.name
    ), counted AS (
        INSERT INTO holdfast.gate AS g (name, held, starts, look_at)
        SELECT b.name, old.held - b.n, s.starts, s.starts[2] + old.period
        FROM begun AS b
        CROSS JOIN LATERAL (SELECT * FROM holdfast.gate WHERE gate.name = b.name OFFSET 0) AS old
        CROSS JOIN LATERAL (
            SELECT holdfast.recent_starts(
                holdfast.more_starts(old.starts, b.n, coalesce(old.pinned, old.capacity), at),
                old.period, at
            ) AS starts
        ) AS s
        ON CONFLICT (name) DO UPDATE SET
            held = excluded.held, starts = excluded.starts, look_at = excluded.look_at
        RETURNING g.look_at
    )
    SELECT min(c.look_at) - at INTO look_in FROM counted AS c;
    IF cardinality(kept) < cardinality(rows) THEN
        look_in := 0;
    END IF;
END $$;

-- Start tasks of which some have a lock or other gates, an expiry or an earlier attempt.
CREATE OR REPLACE FUNCTION holdfast.start_groups(rows tid[], me integer, at bigint) RETURNS TABLE (
    ids text[], ranks bigint[], payloads bytea[], lane integer, attempt integer, name text,
    max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint,
    trace text, owner text, charged integer, crash_count integer, cause text
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
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
        array_agg(taken.id::text), array_agg(taken.rank), array_agg(task.payload), taken.lane,
        taken.attempt, task.name, task.max_retries, task.timeout, task.retry, task.lock_key,
        taken.fence, task.trace, task.owner, coalesce(extra.charged, 0),
        coalesce(extra.crash_count, 0), coalesce(extra.cause, 'submitted')
    FROM fenced AS taken
    CROSS JOIN LATERAL (SELECT t.* FROM holdfast.task AS t WHERE t.id = taken.id OFFSET 0) AS task
    LEFT JOIN LATERAL (
        SELECT e.* FROM holdfast.extra AS e
        WHERE e.id = taken.id AND taken.flags & 4 <> 0 LIMIT 1
    ) AS extra ON true
    GROUP BY
        taken.lane, taken.attempt, task.name, task.max_retries, task.timeout, task.retry,
        task.lock_key, taken.fence, task.trace, task.owner, extra.charged, extra.crash_count,
        extra.cause,
        -- As above.
        CASE WHEN octet_length(task.payload) > 10000 THEN taken.id END;
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
CREATE OR REPLACE FUNCTION holdfast.raise_floors(lanes integer[], lates boolean[], heads bigint[]) RETURNS void
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
