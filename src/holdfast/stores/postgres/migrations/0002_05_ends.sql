-- All the ways in which a task ends, is started again or forgotten: as before, but that one with flag
-- 16 leaves a notice in the same commit, or takes it along; and that ends are counted by lane.

CREATE OR REPLACE FUNCTION holdfast.complete(
    worker text, ids uuid[], attempts integer[], results bytea[], now bigint DEFAULT NULL
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
        SELECT g.id, g.result, r.*
        FROM unnest(ids, attempts, results) AS g (id, attempt, result)
        CROSS JOIN LATERAL (
            SELECT run.ctid AS row, run.attempt, run.lane, run.started_at, run.flags, run.fence
            FROM holdfast.run
            WHERE run.id = g.id AND run.attempt = coalesce(g.attempt, 1) AND run.worker = me
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
            e.lane, count(*) AS n, array_agg(e.id) FILTER (WHERE e.flags & 19 <> 0) AS keyed
        FROM ended AS e GROUP BY e.lane
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n, lane)
        SELECT 'running', by_lane.lane, -by_lane.n, NULL FROM by_lane
        UNION ALL SELECT 'completed', at / 1000000, by_lane.n, by_lane.lane FROM by_lane
    )
    SELECT
        coalesce(sum(b.n), 0), ARRAY(SELECT unnest(k.keyed) FROM by_lane AS k)
    INTO written, keyed FROM by_lane AS b;
    IF keyed <> '{}' THEN
        PERFORM holdfast.release_keys(keyed);
        PERFORM holdfast.owe_callbacks(keyed, at);
    END IF;
    RETURN written;
END $$;

CREATE OR REPLACE FUNCTION holdfast.settle_one(
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
        INSERT INTO holdfast.tally VALUES (
            state, at / 1000000, 1, CASE WHEN state <> 'cancelled' THEN r.lane END
        );
        IF r.flags & 16 <> 0 THEN
            PERFORM holdfast.owe_callbacks(ARRAY[wanted], at);
        END IF;
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

CREATE OR REPLACE FUNCTION holdfast.end_idle(
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

CREATE OR REPLACE FUNCTION holdfast.renew(
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
    IF d.flags & 16 <> 0 THEN -- what was not told of the last end will be of the next
        DELETE FROM holdfast.callback AS c WHERE c.id = wanted;
    END IF;
    INSERT INTO holdfast.event (id, at, kind) VALUES (wanted, renew.at, 'requeued');
    INSERT INTO holdfast.tally VALUES (d.state::text, d.finished_at / 1000000, -1);
    PERFORM holdfast.put_back(
        wanted, rank, lane, d.attempt,
        ((lock_key IS NOT NULL)::integer + (unique_key IS NOT NULL)::integer * 2 + 4
        + (d.flags & 16))::smallint,
        lock_key, NULL, due, false, at
    );
    RETURN true;
END $$;

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
    -- First: whoever is done with a callback just now writes an event, which must be there below.
    DELETE FROM holdfast.callback AS x WHERE x.id = ANY (gone);
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

CREATE OR REPLACE FUNCTION holdfast.forget_between(first uuid, past uuid, but uuid[]) RETURNS void
LANGUAGE sql
AS $$
    DELETE FROM holdfast.callback AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.extra AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.attempt AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.event AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
$$;
