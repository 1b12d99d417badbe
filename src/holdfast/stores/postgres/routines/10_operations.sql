-- What operators do to many tasks at once, and what the pruner does.

-- End or ask to stop those of these tasks that show one of these states; answers which.
CREATE OR REPLACE FUNCTION holdfast.cancel(
    ids text[], states text[], now bigint DEFAULT NULL, reason text DEFAULT 'cancelled',
    ended_as text DEFAULT 'cancelled'
) RETURNS text[]
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
            cancel.reason, at, states, cancel.ended_as
        );
        EXIT WHEN cardinality(asked) + cardinality(ended) = cardinality(ids);
    END LOOP;
    RETURN (asked || ended)::text[];
END $$;

CREATE OR REPLACE FUNCTION holdfast.ask_to_stop(ids uuid[], at bigint) RETURNS uuid[]
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
-- (microseconds apart) each waits its turn. `head_starts`: microseconds by priority. A task that waits
-- is merely hurried; an ended one begins anew, unless another has its unique key.
CREATE OR REPLACE FUNCTION holdfast.requeue(
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
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(requeue.now);
    names text[];
    good text[]; -- latches that count those again that had completed, and the others
    bad text[];
    "on" holdfast.going_on[];
BEGIN
    PERFORM 1 FROM holdfast.done WHERE done.id = ANY (ids::uuid[]) ORDER BY done.id FOR UPDATE;
    names := ARRAY(
        SELECT DISTINCT p.name FROM holdfast.task AS t
        CROSS JOIN LATERAL unnest(holdfast.passes_of(t.passes, t.lock_key) || t.counts) AS p (name)
        WHERE t.id = ANY (ids::uuid[])
    );
    IF names <> '{}' THEN
        PERFORM holdfast.hold_gates(names);
    END IF;
    WITH wanted AS MATERIALIZED (
        SELECT
            t.id, t.lane, holdfast.passes_of(t.passes, t.lock_key) AS passes, t.name, t.unique_key, t.counts,
            coalesce(e.rank, t.rank) AS rank, coalesce(e.cause, 'submitted') AS last_cause,
            (head_starts ->> (SELECT lane.priority FROM holdfast.lane WHERE lane.id = t.lane))::bigint
            AS head_start
        FROM (SELECT DISTINCT g.id::uuid AS id FROM unnest(ids) AS g (id) ORDER BY 1) AS g
        CROSS JOIN LATERAL (SELECT * FROM holdfast.task WHERE task.id = g.id OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT * FROM holdfast.extra WHERE extra.id = g.id OFFSET 0) AS e ON true
    ), claimed_keys AS ( -- of several that share a key the first has it
        INSERT INTO holdfast.unique_key (name, key, id)
        SELECT t.name, t.unique_key, t.id
        FROM wanted AS t JOIN holdfast.done AS d ON d.id = t.id
        WHERE t.unique_key IS NOT NULL AND d.state::text = ANY (states) ORDER BY t.id
        ON CONFLICT DO NOTHING
        RETURNING id
    ), ended AS (
        DELETE FROM holdfast.done AS d USING wanted AS t
        WHERE d.id = t.id AND d.state::text = ANY (states)
        AND (t.unique_key IS NULL OR t.id IN (SELECT k.id FROM claimed_keys AS k))
        RETURNING
            t.*, true AS was_over, false AS retrying, d.attempt, NULL::bigint AS expires_at, (
                -- All but its expiry.
                d.flags & ~8 | 4
            )::smallint AS flags,
            d.state, d.finished_at, d.started_at, d.worker, d.fence, d.ended, d.charged, d.error
    ), hurried AS (
        DELETE FROM holdfast.waiting AS w USING wanted AS t
        WHERE w.id = t.id AND CASE WHEN w.retrying THEN 'retrying' ELSE 'queued' END = ANY (states)
        RETURNING
            t.*, false, w.retrying, w.attempt, w.expires_at, (w.flags | 4)::smallint,
            NULL::holdfast.state, NULL::bigint, NULL::bigint, NULL::integer, NULL::bigint,
            NULL::text, NULL::boolean, NULL::text
    ), found AS MATERIALIZED (
        SELECT
            f.*, d.due,
            CASE WHEN f.was_over THEN d.due - f.head_start ELSE least(f.rank, d.due - f.head_start) END
            AS new_rank
        FROM (
            SELECT h.*, row_number() OVER (ORDER BY h.id) AS n
            FROM (SELECT * FROM ended UNION ALL SELECT * FROM hurried) AS h
        ) AS f
        CROSS JOIN LATERAL (
            SELECT at + CASE WHEN pace IS NULL THEN 0 ELSE round((number + f.n) * pace)::bigint END
        ) AS d (due)
    ), attempted AS (
        INSERT INTO holdfast.attempt (
            id, number, cause, worker, started_at, ended_at, ended, charged, error
        )
        SELECT
            f.id, f.attempt, f.last_cause, f.worker, f.started_at, f.finished_at, f.ended,
            coalesce(f.charged, false), f.error
        FROM found AS f WHERE f.was_over AND f.ended IS NOT NULL
    ), renewed AS (
        INSERT INTO holdfast.extra (
            id, rank, run_at, has_no_expiry, cause, started_at, worker, fence
        )
        SELECT f.id, f.new_rank, f.due, true, 'operator', f.started_at, f.worker, f.fence
        FROM found AS f WHERE f.was_over
        ON CONFLICT (id) DO UPDATE SET
            rank = excluded.rank, run_at = excluded.run_at, has_no_expiry = true, charged = 0,
            crash_count = 0, cause = 'operator', started_at = excluded.started_at,
            worker = excluded.worker, fence = excluded.fence, error = NULL, reason = NULL,
            result = NULL, progress = NULL, cancel_requested = false
    ), sooner AS (
        INSERT INTO holdfast.extra (id, rank, run_at)
        SELECT f.id, f.new_rank, f.due FROM found AS f WHERE NOT f.was_over
        ON CONFLICT (id) DO UPDATE SET rank = excluded.rank, run_at = excluded.run_at
    ), noted AS (
        INSERT INTO holdfast.event (id, at, kind)
        SELECT f.id, at, 'requeued' FROM found AS f WHERE f.was_over ORDER BY f.id
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT f.state::text, f.finished_at / 1000000, -count(*)
        FROM found AS f WHERE f.was_over GROUP BY 1, 2
        UNION ALL
        SELECT 'waiting', f.lane, -count(*) FROM found AS f WHERE NOT f.was_over GROUP BY f.lane
        UNION ALL
        SELECT 'retrying', 0, -count(*) FROM found AS f WHERE f.retrying HAVING count(*) > 0
    )
    SELECT ARRAY(
        SELECT (
            f.id, f.new_rank, f.lane, f.attempt, f.flags, f.passes, f.expires_at, f.due, f.retrying
        )::holdfast.going_on
        FROM found AS f ORDER BY f.id
    ), ARRAY(
        SELECT unnest(f.counts) FROM found AS f WHERE f.was_over AND f.state = 'completed'
    ), ARRAY(
        SELECT unnest(f.counts) FROM found AS f WHERE f.was_over AND f.state <> 'completed'
    ) INTO "on", good, bad;
    PERFORM holdfast.count_again(good, bad);
    -- Their own latches are closed until they end again.
    UPDATE holdfast.gate AS g SET "left" = 1, failed = 0, opened_at = NULL, look_at = NULL
    WHERE g.opened_at IS NOT NULL AND g.name = ANY (ARRAY(
        SELECT 'latch:' || o.id FROM unnest("on") AS o WHERE o.flags & 64 <> 0
    ));
    PERFORM holdfast.settle_gates(holdfast.put_in_line("on", at), '{}', at);
    RETURN ARRAY(SELECT o.id::text FROM unnest("on") AS o);
END $$;

-- Drop ended tasks and all that hangs on them; answers how many. Whoever comes second finds them gone.
CREATE OR REPLACE FUNCTION holdfast.forget(ids uuid[], states text[]) RETURNS bigint
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
    DELETE FROM holdfast.journal AS x WHERE x.id = ANY (gone);
    RETURN cardinality(gone);
END $$;

CREATE OR REPLACE FUNCTION holdfast.discard(ids text[], states text[]) RETURNS bigint
LANGUAGE sql
AS $$ SELECT holdfast.forget(discard.ids::uuid[], discard.states) $$;

-- Forget what ended long ago, row by row, `max` at most; and what has no task any more.
CREATE OR REPLACE FUNCTION holdfast.prune(
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
    DELETE FROM holdfast.gate AS g WHERE g.name IN (
        SELECT opened.name FROM holdfast.gate AS opened
        WHERE opened.opened_at < oldest
        AND NOT EXISTS (SELECT 1 FROM holdfast.blocked AS b WHERE b.gate = opened.name)
        LIMIT greatest(max, 1000) FOR UPDATE SKIP LOCKED
    );
    UPDATE holdfast.worker AS w SET forgotten = true
    WHERE w.status NOT IN ('active', 'draining') AND w.beat_at < oldest AND NOT w.forgotten;
    PERFORM holdfast.fold_tally(at);
    RETURN gone;
END $$;
