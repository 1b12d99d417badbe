-- How attempts ended.

-- Plain successes: one guarded statement for all of them, and the keys of those that have some. A row
-- in `extra` stays as it is: for a task that is over `done` has the word, and a success charges nothing.
-- What came too late or is not there is left to `settle`, which takes what was written here for a
-- repeat and lets it pass. `attempts` NULL: all are the first.
CREATE OR REPLACE FUNCTION holdfast.complete(
    worker text, ids uuid[], attempts integer[], results bytea[], now bigint DEFAULT NULL
) RETURNS bigint
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
    at bigint := holdfast.now_us(complete.now);
    me integer;
    written bigint;
    gone bigint;
    marked uuid[];
    awaited uuid[];
    keyed uuid[];
    gated uuid[];
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
            OFFSET 0 FOR UPDATE
        ) AS r
    ), gone AS (
        DELETE FROM holdfast.run AS r WHERE r.ctid = ANY (ARRAY(SELECT e.row FROM ended AS e))
        RETURNING 1
    ), kept AS (
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, fence, ended, result
        )
        SELECT
            e.id, at, e.started_at, 'completed', e.attempt, me, e.flags, e.fence, 'completed',
            e.result
        FROM ended AS e
    ), by_lane AS (
        SELECT e.lane, count(*) AS n FROM ended AS e GROUP BY e.lane
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n, lane)
        SELECT 'running', by_lane.lane, -by_lane.n, NULL FROM by_lane
        UNION ALL SELECT 'completed', at / 1000000, by_lane.n, by_lane.lane FROM by_lane
    )
    SELECT
        count(*), (SELECT count(*) FROM gone AS g), array_agg(e.id) FILTER (WHERE e.flags & 196 <> 0),
        array_agg(e.id) FILTER (WHERE e.flags & 192 <> 0),
        array_agg(e.id) FILTER (WHERE e.flags & 2 <> 0),
        array_agg(e.id) FILTER (WHERE e.flags & 33 <> 0)
    INTO written, gone, marked, awaited, keyed, gated FROM ended AS e;
    IF gone < written THEN -- marked since the statement above began: it has locked rows that it cannot see
        DELETE FROM holdfast.run AS r WHERE r.id = ANY (marked);
    END IF;
    IF marked IS NOT NULL AND EXISTS (SELECT 1 FROM holdfast.stop WHERE worker = me) THEN
        DELETE FROM holdfast.stop AS s WHERE s.worker = me AND s.id = ANY (marked);
    END IF;
    IF keyed IS NOT NULL THEN
        PERFORM holdfast.hold_unique_keys(keyed);
        DELETE FROM holdfast.unique_key AS u USING holdfast.task AS t
        WHERE t.id = ANY (keyed) AND u.name = t.name AND u.key = t.unique_key AND u.id = t.id;
    END IF;
    IF gated IS NOT NULL OR awaited IS NOT NULL THEN
        PERFORM holdfast.let_go(gated, awaited, at);
    END IF;
    RETURN written;
END $$;

-- Let go of the gates of tasks that have just completed (`gated`), and count the latches that the ends
-- of some count (`awaited`), their own or others.
CREATE OR REPLACE FUNCTION holdfast.let_go(gated uuid[], awaited uuid[], at bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.settle_ends(
        ARRAY(
            SELECT l.name
            FROM unnest(awaited) AS a (id)
            CROSS JOIN LATERAL (SELECT * FROM holdfast.task WHERE task.id = a.id OFFSET 0) AS t
            CROSS JOIN LATERAL holdfast.latches_of(t.id, 192::smallint, t.counts) AS l (name)
        ),
        '{}', '{}',
        ARRAY(
            SELECT p.name
            FROM (
                SELECT unnest(t.passes) AS name
                FROM unnest(gated) AS i (id)
                CROSS JOIN LATERAL (
                    SELECT holdfast.passes_of(task.passes, task.lock_key) AS passes
                    FROM holdfast.task WHERE task.id = i.id OFFSET 0
                ) AS t
            ) AS p
            WHERE holdfast.kind_of(p.name) BETWEEN 1 AND 4
        ),
        at
    );
END $$;

-- Tasks have left: their ends count latches (of those that completed, and of the others), and the
-- gates that they let go, or stood before (`came`), are gone through.
CREATE OR REPLACE FUNCTION holdfast.settle_ends(
    good text[], bad text[], came text[], let_go text[], at bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    latches text[] := good || bad;
BEGIN
    IF cardinality(latches) > 0 THEN
        PERFORM holdfast.count_down(
            latches, NULL,
            array_fill(0, ARRAY[cardinality(good)]) || array_fill(1, ARRAY[cardinality(bad)]), at
        );
        came := came || latches;
    END IF;
    IF cardinality(came) > 0 OR cardinality(let_go) > 0 THEN
        PERFORM holdfast.settle_gates(came, let_go, at);
    END IF;
END $$;

-- Any settlements, of different tasks, in one statement. Answers those that came too late: their
-- position, and who has the task now. `charges`, `crash_counts` NULL: they stay as they are.
CREATE OR REPLACE FUNCTION holdfast.settle(
    ids text[], attempts integer[], workers text[], states text[], ends text[], charges integer[],
    crash_counts integer[], results bytea[], errors text[], delays bigint[], causes text[],
    reasons text[], needs text[], at bigint
) RETURNS TABLE (n integer, holder text)
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
    all_late boolean := current_setting('transaction_isolation') <> 'read committed';
    keyed uuid[];
    let_go text[];
    good text[];
    bad text[];
    late integer[];
    "on" holdfast.going_on[];
    s record;
BEGIN
    -- Whose lease holds: locked, in order.
    SELECT array_agg(held.id) FILTER (WHERE held.flags & 2 <> 0) INTO keyed
    FROM (
        SELECT r.id, r.flags
        FROM (
            SELECT * FROM unnest(ids::uuid[], attempts, workers) AS given (id, attempt, worker)
            ORDER BY given.id
        ) AS g
        CROSS JOIN LATERAL (
            SELECT run.id, run.flags FROM holdfast.run
            WHERE run.id = g.id AND run.attempt = g.attempt AND run.worker = (
                SELECT w.number FROM holdfast.worker AS w WHERE w.id = g.worker
            )
            OFFSET 0 FOR UPDATE
        ) AS r
    ) AS held;
    IF keyed IS NOT NULL THEN
        PERFORM holdfast.hold_unique_keys(keyed);
    END IF;
    IF needs IS NOT NULL THEN -- made in one order, whoever makes them
        PERFORM holdfast.lane_of(wanted.queue, wanted.requires, wanted.priority)
        FROM (
            SELECT DISTINCT lane.queue, lane.requires || g.need AS requires, lane.priority
            FROM unnest(ids::uuid[], needs) AS g (id, need)
            JOIN holdfast.task ON task.id = g.id JOIN holdfast.lane ON lane.id = task.lane
            WHERE g.need IS NOT NULL
            ORDER BY 1, 2, 3
        ) AS wanted;
    END IF;
    WITH given AS MATERIALIZED (
        SELECT g.*
        FROM unnest(
            ids::uuid[], attempts, workers, states, ends, charges, crash_counts, results, errors,
            delays, causes, reasons, needs
        ) WITH ORDINALITY AS g (
            id, attempt, worker_id, state, ended, charged, crash_count, result, error, delay, cause,
            reason, need, n
        )
    ), found AS MATERIALIZED (
        SELECT
            g.id, g.n, g.ended, coalesce(g.charged, e.charged, 0) AS charged,
            coalesce(g.crash_count, e.crash_count, 0) AS crash_count, g.result, g.error, g.need,
            r.row, r.attempt, r.worker, r.lane, r.started_at, r.flags, r.fence,
            t.name, t.unique_key, holdfast.passes_of(t.passes, t.lock_key) AS passes, t.counts,
            coalesce(e.rank, t.rank) AS rank, t.expires_at,
            coalesce(e.cause, 'submitted') AS last_cause, e.id IS NOT NULL AS has_extra,
            coalesce(g.charged > coalesce(e.charged, 0), false) AS was_charged,
            coalesce(e.cancel_requested, false) AS stopped,
            -- `lifecycle.cancelled_instead`
            CASE WHEN e.cancel_requested AND NOT over.is_so THEN 'cancelled' ELSE g.state END AS state,
            CASE WHEN e.cancel_requested AND NOT over.is_so THEN NULL ELSE g.cause END AS cause,
            CASE WHEN e.cancel_requested AND NOT over.is_so THEN 'cancelled' ELSE g.reason END
            AS reason,
            over.is_so OR coalesce(e.cancel_requested, false) AS is_over,
            at + g.delay AS due
        FROM given AS g
        CROSS JOIN LATERAL (
            SELECT g.state IN ('completed', 'failed', 'cancelled', 'dead_letter') AS is_so
        ) AS over
        CROSS JOIN LATERAL (
            SELECT
                run.ctid AS row, run.attempt, run.worker, run.lane, run.started_at, run.flags,
                run.fence
            FROM holdfast.run
            WHERE run.id = g.id AND run.attempt = g.attempt AND run.worker = (
                SELECT w.number FROM holdfast.worker AS w WHERE w.id = g.worker_id
            )
            OFFSET 0
        ) AS r
        CROSS JOIN LATERAL (SELECT * FROM holdfast.task WHERE task.id = g.id OFFSET 0) AS t
        LEFT JOIN LATERAL (
            SELECT * FROM holdfast.extra WHERE extra.id = g.id OFFSET 0
        ) AS e ON true
    ), ends AS MATERIALIZED (
        SELECT
            f.*,
            f.has_extra OR f.charged <> 0 OR f.crash_count <> 0 OR NOT f.is_over AS needs_extra,
            (f.flags | CASE
                WHEN f.has_extra OR f.charged <> 0 OR f.crash_count <> 0 OR NOT f.is_over
                THEN 4 ELSE 0 END)::smallint AS new_flags,
            CASE WHEN f.need IS NULL OR f.is_over THEN f.lane ELSE (
                SELECT holdfast.lane_of(lane.queue, lane.requires || f.need, lane.priority)
                FROM holdfast.lane WHERE lane.id = f.lane
            ) END AS new_lane,
            CASE WHEN f.flags & 8 <> 0 AND NOT f.is_over THEN f.expires_at END AS expiry
        FROM found AS f
    ), gone AS (
        DELETE FROM holdfast.run AS r WHERE r.ctid = ANY (ARRAY(SELECT e.row FROM ends AS e))
    ), no_longer_asked AS (
        DELETE FROM holdfast.stop AS s USING ends AS e
        WHERE e.stopped AND s.worker = e.worker AND s.id = e.id
    ), remembered AS (
        INSERT INTO holdfast.extra AS old (
            id, charged, crash_count, cause, started_at, worker, fence, error, reason, result,
            run_at
        )
        SELECT
            e.id, e.charged, e.crash_count, coalesce(e.cause, e.last_cause), e.started_at, e.worker,
            e.fence, e.error, e.reason, e.result, CASE WHEN NOT e.is_over THEN e.due END
        FROM ends AS e WHERE e.needs_extra
        ON CONFLICT (id) DO UPDATE SET
            charged = excluded.charged, crash_count = excluded.crash_count, cause = excluded.cause,
            started_at = excluded.started_at, worker = excluded.worker, fence = excluded.fence,
            error = excluded.error, reason = excluded.reason, result = excluded.result,
            run_at = coalesce(excluded.run_at, old.run_at)
    ), kept AS (
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, charged, fence, ended,
            reason, error, result
        )
        SELECT
            e.id, at, e.started_at, e.state::holdfast.state, e.attempt, e.worker, e.new_flags,
            e.was_charged, e.fence, e.ended, e.reason, e.error, e.result
        FROM ends AS e WHERE e.is_over
    ), freed AS (
        DELETE FROM holdfast.unique_key AS u USING ends AS e
        WHERE e.is_over AND e.unique_key IS NOT NULL
        AND u.name = e.name AND u.key = e.unique_key AND u.id = e.id
    ), attempted AS (
        INSERT INTO holdfast.attempt (
            id, number, cause, worker, started_at, ended_at, ended, charged, error
        )
        SELECT
            e.id, e.attempt, e.last_cause, e.worker, e.started_at, at, e.ended, e.was_charged,
            e.error
        FROM ends AS e WHERE NOT e.is_over
    ), expiring_again AS (
        INSERT INTO holdfast.expiring (expires_at, id)
        SELECT e.expiry, e.id FROM ends AS e WHERE e.expiry IS NOT NULL
    ), sent_elsewhere AS (
        UPDATE holdfast.task AS t SET lane = e.new_lane
        FROM ends AS e WHERE e.new_lane <> e.lane AND t.id = e.id
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n, lane)
        SELECT 'running', e.lane, -count(*), NULL::integer FROM ends AS e GROUP BY e.lane
        UNION ALL
        SELECT e.state, at / 1000000, count(*), CASE WHEN e.state <> 'cancelled' THEN e.lane END
        FROM ends AS e WHERE e.is_over GROUP BY 1, 4
    )
    SELECT
        ARRAY(
            -- NOT IN is looked up by hash; NOT EXISTS would compare each with each.
            SELECT g.n FROM given AS g WHERE g.n NOT IN (SELECT e.n FROM ends AS e) ORDER BY g.n
        ),
        ARRAY(
            SELECT (
                e.id, e.rank, e.new_lane, e.attempt, e.new_flags, e.passes, e.expiry, e.due,
                e.state = 'retrying'
            )::holdfast.going_on
            FROM ends AS e WHERE NOT e.is_over
        ),
        ARRAY(
            SELECT p.name FROM ends AS e CROSS JOIN LATERAL unnest(e.passes) AS p (name)
            WHERE holdfast.kind_of(p.name) BETWEEN 1 AND 4
        ),
        ARRAY(
            SELECT l.name FROM ends AS e
            CROSS JOIN LATERAL holdfast.latches_of(e.id, e.flags, e.counts) AS l (name)
            WHERE e.flags & 192 <> 0 AND e.state = 'completed'
        ),
        ARRAY(
            SELECT l.name FROM ends AS e
            CROSS JOIN LATERAL holdfast.latches_of(e.id, e.flags, e.counts) AS l (name)
            WHERE e.flags & 192 <> 0 AND e.is_over AND e.state <> 'completed'
        )
    INTO late, "on", let_go, good, bad;
    PERFORM holdfast.settle_ends(good, bad, holdfast.put_in_line("on", at), let_go, at);
    FOR s IN
        SELECT l.n, ids[l.n]::uuid AS id, attempts[l.n] AS attempt, workers[l.n] AS worker
        FROM unnest(late) AS l (n)
        WHERE NOT holdfast.was_saved(ids[l.n]::uuid, attempts[l.n], workers[l.n], ends[l.n])
        ORDER BY l.n
    LOOP
        INSERT INTO holdfast.event (id, at, kind, attempt, worker_id)
        SELECT task.id, settle.at, 'late_result_refused', s.attempt, s.worker
        FROM holdfast.task WHERE task.id = s.id;
        INSERT INTO holdfast.tally VALUES ('refused', 0, 1);
        n := s.n;
        holder := holdfast.holder_of(s.id);
        RETURN NEXT;
    END LOOP;
END $$;

-- Who runs a task.
CREATE OR REPLACE FUNCTION holdfast.holder_of(wanted uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT w.id FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
    WHERE r.id = wanted
$$;

-- Whether this very end of an attempt is in the history.
CREATE OR REPLACE FUNCTION holdfast.was_saved(wanted uuid, attempt integer, worker text, ended text)
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

-- Where tasks go that will be started (again): they wait, or stand before their first gate, or in line
-- for a worker; answers these gates. Rows in line are `late` if they come in below the floor of their
-- lane.
CREATE OR REPLACE FUNCTION holdfast.put_in_line(tasks holdfast.going_on[], at bigint) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    all_late boolean := current_setting('transaction_isolation') <> 'read committed';
    came text[];
    latches text[];
BEGIN
    IF cardinality(tasks) = 0 THEN
        RETURN '{}';
    END IF;
    WITH given AS MATERIALIZED (
        SELECT
            g.*,
            CASE
                WHEN g.due > at THEN 'waiting' WHEN g.passes IS NOT NULL THEN 'blocked'
                ELSE 'ready'
            END AS place
        FROM unnest(tasks) AS g
    ), waits AS (
        INSERT INTO holdfast.waiting (id, rank, due_at, lane, attempt, flags, retrying, expires_at)
        SELECT g.id, g.rank, g.due, g.lane, g.attempt, g.flags, g.retrying, g.expires_at
        FROM given AS g WHERE g.place = 'waiting'
    ), held_up AS (
        INSERT INTO holdfast.blocked (gate, rank, id, lane, attempt, flags, expires_at, gates)
        SELECT
            g.passes[1], g.rank, g.id, g.lane, g.attempt, g.flags, g.expires_at,
            CASE WHEN cardinality(g.passes) > 1 THEN g.passes END
        FROM given AS g WHERE g.place = 'blocked'
        RETURNING gate, gates
    ), lined_up AS (
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
        SELECT
            g.id, g.rank, g.lane, g.attempt, g.flags,
            all_late OR g.rank < coalesce(floor.pending, g.rank), g.expires_at
        FROM given AS g LEFT JOIN holdfast.floor ON floor.lane = g.lane WHERE g.place = 'ready'
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT g.place, g.lane, count(*) FROM given AS g GROUP BY 1, 2
        UNION ALL
        SELECT 'retrying', 0, count(*) FROM given AS g
        WHERE g.place = 'waiting' AND g.retrying HAVING count(*) > 0
    )
    SELECT array_agg(h.gate), (
        SELECT array_agg(p.name)
        FROM held_up AS h CROSS JOIN LATERAL unnest(coalesce(h.gates, ARRAY[h.gate])) AS p (name)
        WHERE holdfast.kind_of(p.name) = 0
    ) INTO came, latches FROM held_up AS h;
    IF latches IS NOT NULL THEN
        PERFORM holdfast.stand_behind(latches);
    END IF;
    RETURN came;
END $$;

-- An array in which all are alike may come as one element.
CREATE OR REPLACE FUNCTION holdfast.filled(given anyarray, size integer) RETURNS anyarray
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN cardinality(given) = 1 THEN array_fill(given[1], ARRAY[size]) ELSE given
    END
$$;

-- What the store calls. Plain successes of one worker (`ids`, `attempts`, `results`) and the rest, in
-- arrays of their own; refusals are numbered through, the plain ones first.
CREATE OR REPLACE FUNCTION holdfast.save(
    worker text, ids uuid[], attempts integer[], results bytea[],
    rest_ids text[], rest_attempts integer[], rest_workers text[], states text[], ends text[],
    charges integer[], crash_counts integer[], rest_results bytea[], errors text[],
    delays bigint[], causes text[], reasons text[], now bigint DEFAULT NULL,
    needs text[] DEFAULT NULL
) RETURNS TABLE (n integer, holder text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    at bigint := holdfast.now_us(save.now);
    size integer := coalesce(cardinality(ids), 0);
    rest integer := cardinality(rest_ids);
BEGIN
    IF size > 0 AND holdfast.complete(worker, ids, attempts, results, at) < size THEN
        RETURN QUERY
        SELECT s.n, s.holder
        FROM holdfast.settle(
            ids::text[], coalesce(attempts, array_fill(1, ARRAY[size])),
            array_fill(worker, ARRAY[size]), array_fill('completed'::text, ARRAY[size]),
            array_fill('completed'::text, ARRAY[size]), NULL, NULL, results, NULL,
            array_fill(0::bigint, ARRAY[size]), NULL, NULL, NULL, at
        ) AS s;
    END IF;
    IF rest_ids IS NOT NULL THEN
        RETURN QUERY
        SELECT s.n + size, s.holder
        FROM holdfast.settle(
            rest_ids, holdfast.filled(rest_attempts, rest), holdfast.filled(rest_workers, rest),
            holdfast.filled(states, rest), holdfast.filled(ends, rest),
            holdfast.filled(charges, rest), holdfast.filled(crash_counts, rest),
            holdfast.filled(rest_results, rest), holdfast.filled(errors, rest),
            holdfast.filled(delays, rest), holdfast.filled(causes, rest),
            holdfast.filled(reasons, rest), needs, at
        ) AS s;
    END IF;
END $$;

-- What running attempts want stored before they end. Answers the stale ones, as `save` does.
CREATE OR REPLACE FUNCTION holdfast.report(
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
