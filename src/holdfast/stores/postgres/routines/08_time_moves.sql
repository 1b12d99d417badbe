-- What time has moved: due tasks stand in line, expired ones end. No timer does it: every claim does,
-- whoever claims, in slices.

-- Promote what is due, in every lane; answers in how many microseconds the next task of these lanes
-- will be (0: at once, because another claim is about to promote some). Runs under the pins of
-- `claim`.
CREATE OR REPLACE FUNCTION holdfast.promote(eligible integer[], at bigint) RETURNS bigint
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

-- Take a task out of the place where it waits for its turn; NULL if it does not. The row of its lock,
-- if it has one, is locked already.
CREATE OR REPLACE FUNCTION holdfast.take_out(
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
            t.id, at, t.started_at, ended_as::holdfast.state, gone.attempt, t.worker, gone.flags,
            t.fence, reason, t.error, t.result
        );
        INSERT INTO holdfast.event (id, at, kind) VALUES (t.id, at, reason);
        INSERT INTO holdfast.tally VALUES (
            ended_as, at / 1000000, 1, CASE WHEN ended_as <> 'cancelled' THEN t.lane END
        );
        IF t.unique_key IS NOT NULL THEN
            DELETE FROM holdfast.unique_key AS u
            WHERE u.name = t.name AND u.key = t.unique_key AND u.id = t.id;
        END IF;
        IF gone.flags & 16 <> 0 THEN
            PERFORM holdfast.owe_callbacks(ARRAY[t.id], at);
        END IF;
        ended := ended || t.id;
    END LOOP;
    IF locks <> '{}' THEN
        PERFORM holdfast.settle_locks(locks);
    END IF;
    RETURN ended;
END $$;
