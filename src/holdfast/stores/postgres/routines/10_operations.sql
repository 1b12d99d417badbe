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
-- (microseconds apart) each waits its turn. `head_starts`: microseconds by priority.
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
CREATE OR REPLACE FUNCTION holdfast.hurry(
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
    UPDATE holdfast.worker AS w SET forgotten = true
    WHERE w.status NOT IN ('active', 'draining') AND w.beat_at < oldest AND NOT w.forgotten;
    PERFORM holdfast.fold_tally(at);
    RETURN gone;
END $$;
