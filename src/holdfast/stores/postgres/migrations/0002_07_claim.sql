-- Claims in groups, a row each: tasks that differ in nothing but id, rank and payload. Mostly that is
-- all of them, and three arrays are read much quicker than a thousand rows. The first row is no group;
-- its one rank says in how many microseconds the next task will be due. All else is as before
-- (0001_07_claim.sql).

DROP FUNCTION holdfast.claim(text, text[], text[], integer, bigint);
DROP FUNCTION holdfast.start_carefully(tid[], integer, bigint);

CREATE FUNCTION holdfast.claim(
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
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(claim.now);
    me integer;
    has_expired boolean;
    eligible integer[];
    next_due bigint;
    lanes integer[];
    lates boolean[];
    heads bigint[];
    rows tid[];
    careful boolean;
    one record;
BEGIN
    -- The worker's row is locked until the claim is committed, so that nobody buries it meanwhile:
    -- what it has started would never be looked for. (A heartbeat waits as long.)
    SELECT
        w.number, EXISTS (SELECT 1 FROM holdfast.expiring WHERE expires_at <= at),
        ARRAY(
            SELECT lane.id FROM holdfast.lane
            WHERE (claim.queues IS NULL OR queue = ANY (claim.queues))
            AND requires <@ claim.capabilities -- not what the worker registered with
            AND NOT EXISTS (SELECT 1 FROM holdfast.paused_queue AS p WHERE p.queue = lane.queue)
        )
    INTO me, has_expired, eligible
    FROM holdfast.worker AS w
    WHERE w.id = claim.worker AND w.status IN ('active', 'draining') FOR SHARE;
    IF me IS NULL THEN
        RAISE EXCEPTION 'worker % is gone', claim.worker USING ERRCODE = 'HF001';
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

    claim.ranks := ARRAY[next_due]; -- the first row is no task
    RETURN NEXT;
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

-- Start tasks of which some have a lock, an expiry, a callback or an earlier attempt.
CREATE FUNCTION holdfast.start_carefully(rows tid[], me integer, at bigint) RETURNS TABLE (
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
        ARRAY[task.id::text], ARRAY[taken.rank], ARRAY[task.payload], taken.lane, taken.attempt,
        task.name, task.max_retries, task.timeout, task.retry, task.lock_key, taken.fence, task.trace,
        task.owner, coalesce(extra.charged, 0), coalesce(extra.crash_count, 0),
        coalesce(extra.cause, 'submitted')
    FROM fenced AS taken
    JOIN holdfast.task ON task.id = taken.id
    LEFT JOIN LATERAL (
        SELECT e.* FROM holdfast.extra AS e
        WHERE e.id = taken.id AND taken.flags & 4 <> 0 LIMIT 1
    ) AS extra ON true;
END $$;
