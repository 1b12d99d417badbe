-- The store in numbers, at one instant, without counting a backlog.
CREATE OR REPLACE FUNCTION holdfast.numbers(now bigint DEFAULT NULL) RETURNS json
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
        'paused', (
            SELECT coalesce(json_agg(p.key), '[]') FROM holdfast.record AS p WHERE p.kind = 'pause'
        )
    );
END $$;

-- How many ready tasks of its queue stand before a ready task, counting up to `cap`.
CREATE OR REPLACE FUNCTION holdfast.ahead(queue text, rank bigint, id uuid, cap integer) RETURNS bigint
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
