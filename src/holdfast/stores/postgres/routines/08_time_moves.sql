-- What time has moved: due tasks stand in line, expired ones end. No timer does it: every claim does,
-- whoever claims, in slices.

-- Promote what is due, in every lane, and go through gates that time has opened; answers in how many
-- microseconds the next task of these lanes will be due, or the next gate (0: at once, because another
-- claim is about to promote some). Runs under the pins of `claim`.
CREATE OR REPLACE FUNCTION holdfast.promote(eligible integer[], at bigint) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    next_due bigint;
    next_look bigint;
    is_due boolean;
BEGIN
    FOR round IN 1 .. 2 LOOP
        SELECT
            min(first.due_at) FILTER (WHERE lane.id = ANY (eligible)), bool_or(first.due_at <= at),
            (SELECT min(g.look_at) FROM holdfast.gate AS g WHERE g.look_at IS NOT NULL)
        INTO next_due, is_due, next_look
        FROM holdfast.lane
        CROSS JOIN LATERAL (
            SELECT w.due_at FROM holdfast.waiting AS w WHERE w.lane = lane.id
            ORDER BY w.due_at LIMIT 1
        ) AS first;
        EXIT WHEN round = 2 OR (is_due OR next_look <= at) IS NOT TRUE;
        PERFORM holdfast.promote_due(at);
        PERFORM holdfast.settle_gates(
            ARRAY(
                SELECT g.name FROM holdfast.gate AS g WHERE g.look_at <= at
                ORDER BY holdfast.kind_of(g.name), g.name LIMIT 1000 FOR UPDATE SKIP LOCKED
            ),
            '{}', at
        );
    END LOOP;
    next_due := least(next_due, next_look);
    RETURN CASE WHEN next_due IS NOT NULL THEN greatest(next_due - at, 0) END;
END $$;

CREATE OR REPLACE FUNCTION holdfast.promote_due(at bigint) RETURNS void
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
    gated boolean;
    names text[];
    said text[];
    came text[];
    found bigint;
BEGIN
    FOR round IN 1 .. 5 LOOP
        SELECT array_agg(w.id), bool_or(w.flags & 33 <> 0) INTO due, gated
        FROM holdfast.lane
        CROSS JOIN LATERAL (
            SELECT waiting.id, waiting.flags FROM holdfast.waiting
            WHERE waiting.lane = lane.id AND waiting.due_at <= at
            ORDER BY waiting.due_at LIMIT 1000
        ) AS w;
        EXIT WHEN due IS NULL;
        IF gated THEN
            -- What was submitted in somebody's transaction stands before its gates only now.
            SELECT
                array_agg(DISTINCT p.name),
                array_agg(DISTINCT t.gates) FILTER (WHERE t.run_at <= t.created_at)
            INTO names, said
            FROM holdfast.task AS t
            CROSS JOIN LATERAL unnest(holdfast.passes_of(t.passes, t.lock_key)) AS p (name)
            WHERE t.id = ANY (due);
            PERFORM holdfast.stand_behind(names);
            PERFORM holdfast.hold_gates(names);
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
            WHERE m.flags & 33 = 0
        ), held_up AS (
            INSERT INTO holdfast.blocked (gate, rank, id, lane, attempt, flags, expires_at, gates)
            SELECT
                t.passes[1], m.rank, m.id, m.lane, m.attempt, m.flags, m.expires_at,
                CASE WHEN cardinality(t.passes) > 1 THEN t.passes END
            FROM moved AS m CROSS JOIN LATERAL (
                SELECT holdfast.passes_of(task.passes, task.lock_key) AS passes
                FROM holdfast.task WHERE task.id = m.id OFFSET 0
            ) AS t
            WHERE m.flags & 33 <> 0
            RETURNING gate
        ), counted AS (
            INSERT INTO holdfast.tally (kind, key, n)
            SELECT 'waiting', m.lane, -count(*) FROM moved AS m GROUP BY m.lane
            UNION ALL
            SELECT CASE WHEN m.flags & 33 = 0 THEN 'ready' ELSE 'blocked' END, m.lane, count(*)
            FROM moved AS m GROUP BY 1, 2
            UNION ALL
            SELECT 'retrying', 0, -count(*) FROM moved AS m WHERE m.retrying HAVING count(*) > 0
        )
        SELECT (SELECT count(*) FROM moved), (SELECT array_agg(DISTINCT h.gate) FROM held_up AS h)
        INTO found, came;
        IF came IS NOT NULL THEN
            PERFORM holdfast.settle_gates(came || holdfast.announce(said, '{}'), '{}', at);
        END IF;
        EXIT WHEN found < 1000;
    END LOOP;
END $$;

-- End what was not started in time.
CREATE OR REPLACE FUNCTION holdfast.end_expired(at bigint) RETURNS void
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

-- End those of these tasks that are not running and show one of these states (NULL: any); answers
-- which. The event has the reason's name.
CREATE OR REPLACE FUNCTION holdfast.end_idle(
    ids uuid[], reason text, at bigint, states text[] DEFAULT NULL, ended_as text DEFAULT 'cancelled'
) RETURNS uuid[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    names text[];
    ended uuid[];
    came text[];
    let_go text[];
    latches text[];
BEGIN
    PERFORM holdfast.hold_unique_keys(ids);
    names := ARRAY(
        SELECT DISTINCT p.name FROM holdfast.task AS t
        CROSS JOIN LATERAL unnest(holdfast.passes_of(t.passes, t.lock_key)) AS p (name)
        WHERE t.id = ANY (ids)
    );
    IF names <> '{}' THEN
        PERFORM holdfast.hold_gates(names);
    END IF;
    WITH wanted AS MATERIALIZED (
        SELECT
            t.id, t.lane, holdfast.passes_of(t.passes, t.lock_key) AS passes, t.counts, t.name,
            t.unique_key, coalesce(e.rank, t.rank) AS rank, e.started_at, e.worker, e.fence, e.error, e.result
        FROM (SELECT DISTINCT g.id FROM unnest(ids) AS g (id) ORDER BY g.id) AS g
        CROSS JOIN LATERAL (SELECT * FROM holdfast.task WHERE task.id = g.id OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT * FROM holdfast.extra WHERE extra.id = g.id OFFSET 0) AS e ON true
    ), waited AS (
        DELETE FROM holdfast.waiting AS w USING wanted AS t
        WHERE w.id = t.id AND (
            states IS NULL
            OR CASE WHEN w.retrying THEN 'retrying' ELSE 'queued' END = ANY (states)
        )
        RETURNING
            'waiting' AS place, NULL::text AS gate, 0 AS passed, w.attempt, w.flags, w.retrying,
            w.expires_at, t.*
    ), in_line AS (
        DELETE FROM holdfast.ready AS r USING wanted AS t
        WHERE r.lane = t.lane AND r.late IN (false, true) AND r.rank = t.rank AND r.id = t.id
        AND (states IS NULL OR 'queued' = ANY (states))
        RETURNING 'ready', NULL, cardinality(t.passes), r.attempt, r.flags, false, r.expires_at, t.*
    ), held_up AS (
        DELETE FROM holdfast.blocked AS b USING wanted AS t
        WHERE b.gate = ANY (t.passes) AND b.rank = t.rank AND b.id = t.id
        AND (states IS NULL OR 'blocked' = ANY (states))
        RETURNING 'blocked', b.gate, b.passed, b.attempt, b.flags, false, b.expires_at, t.*
    ), gone AS MATERIALIZED (
        SELECT * FROM waited UNION ALL SELECT * FROM in_line UNION ALL SELECT * FROM held_up
    ), not_expiring AS (
        DELETE FROM holdfast.expiring AS e USING gone AS g
        WHERE g.flags & 8 <> 0 AND e.expires_at = g.expires_at AND e.id = g.id
    ), freed AS (
        DELETE FROM holdfast.unique_key AS u USING gone AS g
        WHERE g.unique_key IS NOT NULL
        AND u.name = g.name AND u.key = g.unique_key AND u.id = g.id
    ), kept AS (
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, fence, reason, error, result
        )
        SELECT
            g.id, at, g.started_at, ended_as::holdfast.state, g.attempt, g.worker, g.flags, g.fence,
            end_idle.reason, g.error, g.result
        FROM gone AS g
    ), noted AS (
        INSERT INTO holdfast.event (id, at, kind)
        SELECT g.id, end_idle.at, end_idle.reason FROM gone AS g ORDER BY g.id
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n, lane)
        SELECT g.place, g.lane, -count(*), NULL::integer FROM gone AS g GROUP BY 1, 2
        UNION ALL
        SELECT 'retrying', 0, -count(*), NULL FROM gone AS g WHERE g.retrying HAVING count(*) > 0
        UNION ALL
        SELECT ended_as, at / 1000000, count(*), CASE WHEN ended_as <> 'cancelled' THEN g.lane END
        FROM gone AS g GROUP BY 4
    )
    SELECT
        ARRAY(SELECT g.id FROM gone AS g ORDER BY g.id),
        ARRAY(SELECT DISTINCT g.gate FROM gone AS g WHERE g.gate IS NOT NULL),
        ARRAY(
            SELECT p.name
            FROM gone AS g CROSS JOIN LATERAL unnest(g.passes[1:g.passed]) AS p (name)
            WHERE holdfast.kind_of(p.name) > 0
        ),
        ARRAY(
            SELECT l.name FROM gone AS g
            CROSS JOIN LATERAL holdfast.latches_of(g.id, g.flags, g.counts) AS l (name)
            WHERE g.flags & 192 <> 0
        )
    INTO ended, came, let_go, latches;
    PERFORM holdfast.settle_ends('{}', latches, came, let_go, at);
    RETURN ended;
END $$;
