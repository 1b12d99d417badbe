-- Gates, and how tasks pass them: `core/passing.py` in SQL, for whole batches.
--
-- A task that becomes eligible is put before its first gate, into `blocked`; one that leaves lets go
-- of what it has passed. Whoever did either then calls `settle_gates`, which goes through the gates
-- that were touched, each kind after the other, until nothing moves.
--
-- Rows are locked in this order: run, idempotency, unique_key, gate (latches first, in the order of
-- passing), then ready, waiting and blocked. Who takes rows out of the last three (a cancel, an
-- expiry, a promotion) locks their gates first (`hold_gates`). Claims lock rows of `ready`, and rates
-- after them, but wait for nobody. Two waits remain that go against the order, and both are short:
-- whoever passes a gate goes on to another of the same kind, which may come before one that this
-- batch has locked already (so batches that meet such tasks take turns); and one transaction may
-- settle gates twice. A deadlock of that kind is found by the server, and the call made again.

-- Where a kind stands in the order of passing.
CREATE OR REPLACE FUNCTION holdfast.kind_of(gate text) RETURNS integer
LANGUAGE sql IMMUTABLE
RETURN CASE left(gate, 3)
    WHEN 'lat' THEN 0 WHEN 'bre' THEN 1 WHEN 'loc' THEN 2 WHEN 'lim' THEN 3 WHEN 'sha' THEN 4 ELSE 5
END;

-- All gates of a task, in their order.
CREATE OR REPLACE FUNCTION holdfast.passes_of(passes text[], lock_key text) RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN coalesce(passes, CASE WHEN lock_key IS NOT NULL THEN ARRAY['lock:' || lock_key] END);

-- What a task says of its gates (`core.gate.gates_text`).
CREATE OR REPLACE FUNCTION holdfast.specs_of(gates text)
RETURNS TABLE (name text, capacity integer, period bigint)
LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    SELECT
        (g ->> 0) || ':' || (g ->> 1), (g ->> 2)::integer,
        round((g ->> 3)::double precision * 1000000)::bigint
    FROM json_array_elements(gates::json) AS g;
END;

-- The latches that the end of a task counts.
CREATE OR REPLACE FUNCTION holdfast.latches_of(id uuid, flags smallint, counts text[])
RETURNS TABLE (name text)
LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    SELECT 'latch:' || latches_of.id WHERE latches_of.flags & 64 <> 0
    UNION ALL
    SELECT unnest(latches_of.counts) WHERE latches_of.flags & 128 <> 0;
END;

-- How many starts of a rate are not a period old yet; and which these are.
CREATE OR REPLACE FUNCTION holdfast.started(starts bigint[], period bigint, at bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN (
    SELECT coalesce(sum(starts[i]), 0)::bigint FROM generate_subscripts(starts, 1) AS i
    WHERE i % 2 = 1 AND starts[i + 1] + period > at
);

CREATE OR REPLACE FUNCTION holdfast.recent_starts(starts bigint[], period bigint, at bigint) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
RETURN (
    SELECT coalesce(starts[min(i):], '{}') FROM generate_subscripts(starts, 1) AS i
    WHERE i % 2 = 1 AND starts[i + 1] + period > at
);

-- The starts of a rate and so many more; in at most 64 parts (`core.passing.CHUNKS`).
CREATE OR REPLACE FUNCTION holdfast.more_starts(starts bigint[], number bigint, allowed bigint, at bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    size bigint := greatest(1, (allowed + 63) / 64);
    last integer := cardinality(starts) - 1;
    part bigint;
BEGIN
    IF last > 0 AND starts[last] < size THEN
        part := least(number, size - starts[last]);
        starts[last] := starts[last] + part;
        starts[last + 1] := at;
        number := number - part;
    END IF;
    WHILE number > 0 LOOP
        part := least(number, size);
        starts := starts || part || at;
        number := number - part;
    END LOOP;
    RETURN starts;
END $$;

-- The rank of a task behind the share that it has stood before (`core.passing.Parked.behind_gate`).
CREATE OR REPLACE FUNCTION holdfast.rank_behind(share text, id uuid, rank bigint, at bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN greatest(rank, at - coalesce(
    (
        SELECT (g ->> 4)::bigint
        FROM holdfast.task AS t CROSS JOIN json_array_elements(t.gates::json) AS g
        WHERE t.id = rank_behind.id AND (g ->> 0) || ':' || (g ->> 1) = share
    ), 0
));

-- Whom gates have let pass in this transaction: lane=number, and so on.
CREATE OR REPLACE FUNCTION holdfast.passed_on() RETURNS text
LANGUAGE sql VOLATILE
RETURN nullif(current_setting('holdfast_gates.passed', true), '');

CREATE OR REPLACE FUNCTION holdfast.note_passed(passed text) RETURNS text
LANGUAGE sql VOLATILE
RETURN set_config('holdfast_gates.passed', concat_ws(' ', holdfast.passed_on(), passed), true);

-- Lock the rows of these gates, as far as there are any.
CREATE OR REPLACE FUNCTION holdfast.hold_gates(names text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM 1 FROM holdfast.gate AS g WHERE g.name = ANY (names)
    ORDER BY holdfast.kind_of(g.name), g.name FOR UPDATE;
END $$;

-- Go through gates: those before which somebody `came` to stand (or that may have opened), and those
-- that somebody `let_go` of, once for each. `fresh` are new tasks: who brings them tells of them.
CREATE OR REPLACE FUNCTION holdfast.settle_gates(
    came text[], let_go text[], at bigint, fresh uuid[] DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
SET jit = off
AS $$
DECLARE
    touched text[] := came || let_go;
    stage integer;
    names text[];
    onward text[];
BEGIN
    WHILE cardinality(touched) > 0 LOOP
        IF cardinality(touched) = 1 THEN -- the same in fewer steps
            stage := holdfast.kind_of(touched[1]);
            names := touched;
            touched := NULL;
        ELSE
            stage := (SELECT min(holdfast.kind_of(t)) FROM unnest(touched) AS t);
            SELECT
                array_agg(DISTINCT t) FILTER (WHERE holdfast.kind_of(t) = stage),
                array_agg(t) FILTER (WHERE holdfast.kind_of(t) <> stage)
            INTO names, touched FROM unnest(touched) AS t;
        END IF;
        PERFORM holdfast.hold_line(stage, names);
        IF stage = 2 AND cardinality(came) > 0 THEN
            let_go := let_go || holdfast.step_back(ARRAY(
                SELECT unnest(came) INTERSECT SELECT unnest(names) EXCEPT SELECT unnest(let_go)
            ));
        END IF;
        onward := holdfast.pass(stage, names, let_go, at, fresh);
        touched := touched || onward;
        EXIT WHEN cardinality(touched) = 0;
        came := came || onward;
        let_go := ARRAY(SELECT l FROM unnest(let_go) AS l WHERE holdfast.kind_of(l) <> stage);
    END LOOP;
END $$;

-- Lock the rows of these gates, all of one kind. Those before which somebody stands are made, but for
-- latches: without a row they are open.
CREATE OR REPLACE FUNCTION holdfast.hold_line(stage integer, names text[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    there text[];
    is_unsaid boolean; -- of one that an operator made nobody has said yet how many may pass
BEGIN
    IF EXISTS (SELECT 1 FROM holdfast.blocked AS b WHERE b.flags & 512 <> 0) AND EXISTS (
        SELECT 1 FROM holdfast.blocked AS b WHERE b.flags & 512 <> 0 AND b.gate = ANY (names)
    ) THEN
        PERFORM pg_advisory_xact_lock(hashtext('holdfast'), 10 + stage);
    END IF;
    SELECT coalesce(array_agg(g.name), '{}'), bool_or(g.capacity = 0) INTO there, is_unsaid
    FROM (
        SELECT gate.name, gate.capacity FROM holdfast.gate
        WHERE gate.name = ANY (names) ORDER BY gate.name FOR UPDATE
    ) AS g;
    IF is_unsaid THEN
        UPDATE holdfast.gate AS g SET capacity = s.capacity, period = s.period
        FROM unnest(names) AS n (name)
        CROSS JOIN LATERAL (
            SELECT b.id FROM holdfast.blocked AS b WHERE b.gate = n.name ORDER BY b.rank, b.id LIMIT 1
        ) AS first
        CROSS JOIN LATERAL (SELECT * FROM holdfast.task WHERE task.id = first.id OFFSET 0) AS t
        CROSS JOIN LATERAL holdfast.specs_of(t.gates) AS s
        WHERE s.name = n.name AND g.name = n.name AND g.capacity = 0;
    END IF;
    IF cardinality(there) = cardinality(names) OR stage = 0 THEN
        RETURN;
    END IF;
    INSERT INTO holdfast.gate AS made (name, capacity, period)
    SELECT n.name, coalesce(spec.capacity, 1), coalesce(spec.period, 0)
    FROM (SELECT unnest(names) EXCEPT SELECT unnest(there)) AS n (name)
    CROSS JOIN LATERAL (
        SELECT b.id FROM holdfast.blocked AS b WHERE b.gate = n.name ORDER BY b.rank, b.id LIMIT 1
    ) AS first
    LEFT JOIN LATERAL (
        SELECT s.capacity, s.period
        FROM (SELECT t.gates FROM holdfast.task AS t WHERE t.id = first.id OFFSET 0) AS t
        CROSS JOIN LATERAL holdfast.specs_of(t.gates) AS s WHERE s.name = n.name
    ) AS spec ON stage <> 2
    ORDER BY n.name
    -- An update, not nothing: it locks the row if somebody was quicker.
    ON CONFLICT (name) DO UPDATE SET held = made.held;
END $$;

-- Holders of these locks that have not started, have no gate after the lock and stand behind the
-- first in line step back before it; answers the locks that they let go.
CREATE OR REPLACE FUNCTION holdfast.step_back(names text[]) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    rows tid[];
    free text[];
BEGIN
    rows := ARRAY(
        SELECT r.row
        FROM unnest(names) AS n (name)
        CROSS JOIN LATERAL (
            SELECT g.* FROM holdfast.gate AS g WHERE g.name = n.name AND g.holder IS NOT NULL OFFSET 0
        ) AS g
        CROSS JOIN LATERAL (
            SELECT b.rank, b.id FROM holdfast.blocked AS b
            WHERE b.gate = g.name ORDER BY b.rank, b.id LIMIT 1
        ) AS first
        CROSS JOIN LATERAL (
            SELECT r.ctid AS row, r.flags, r.id FROM holdfast.ready AS r
            WHERE (first.rank, first.id) < (g.rank, g.holder)
            AND r.lane = g.lane AND r.late IN (false, true) AND r.rank = g.rank AND r.id = g.holder
            OFFSET 0 FOR UPDATE
        ) AS r
        WHERE r.flags & 32 = 0 OR n.name = (
            SELECT t.passes[cardinality(t.passes)] FROM holdfast.task AS t WHERE t.id = r.id
        )
    );
    IF rows = '{}' THEN
        RETURN '{}';
    END IF;
    WITH back AS (
        DELETE FROM holdfast.ready AS r WHERE r.ctid = ANY (rows) RETURNING r.*
    ), parked AS (
        INSERT INTO holdfast.blocked (
            gate, rank, id, lane, attempt, flags, expires_at, passed, gates
        )
        SELECT
            'lock:' || t.lock_key, b.rank, b.id, b.lane, b.attempt, b.flags, b.expires_at,
            coalesce(cardinality(t.passes) - 1, 0),
            CASE WHEN cardinality(t.passes) > 1 THEN t.passes END
        FROM back AS b CROSS JOIN LATERAL (
            SELECT task.lock_key, task.passes FROM holdfast.task WHERE task.id = b.id OFFSET 0
        ) AS t
        RETURNING gate
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT kind, b.lane, sign * count(*)
        FROM back AS b CROSS JOIN (VALUES ('ready', -1), ('blocked', 1)) AS change (kind, sign)
        GROUP BY kind, sign, b.lane
    )
    SELECT array_agg(p.gate) INTO free FROM parked AS p;
    RETURN free;
END $$;

-- Let the first of each line pass, as many as there is room for (`core.passing.let_pass`); answers the
-- gates before which they stand now. The rows of the gates are locked, so the lines stand still. From
-- names to rows, and never the other way round: LATERAL, OFFSET, row ids and ON CONFLICT leave the
-- planner no choice.
CREATE OR REPLACE FUNCTION holdfast.pass(
    stage integer, names text[], let_go text[], at bigint, fresh uuid[]
) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    all_late boolean := current_setting('transaction_isolation') <> 'read committed';
    idle tid[];
    onward holdfast.blocked[];
    ranks bigint[];
    passed text;
BEGIN
    WITH touched AS (
        SELECT t.name, sum(t.n)::integer AS n
        FROM (
            SELECT unnest(names) AS name, 0 AS n
            UNION ALL SELECT l, 1 FROM unnest(let_go) AS l WHERE holdfast.kind_of(l) = stage
        ) AS t
        GROUP BY t.name
    ), gate AS (
        SELECT
            t.name, t.n AS gone, g.held - t.n AS held, g.pinned, g.period, g.look_at, g.starts,
            g.name IS NOT NULL AS is_there, g.row,
            CASE
                WHEN stage = 0 AND g.name IS NULL THEN NULL -- whoever there is
                WHEN stage = 0 THEN CASE WHEN g.opened_at IS NULL THEN 0 ELSE 1000 END
                ELSE greatest(0, least(
                    1000, coalesce(g.pinned, g.capacity)::bigint - (g.held - t.n)
                    - CASE WHEN g.starts = '{}' THEN 0
                    ELSE holdfast.started(g.starts, g.period, at) END
                ))
            END AS room
        FROM touched AS t
        LEFT JOIN LATERAL (
            SELECT gate.ctid AS row, * FROM holdfast.gate WHERE gate.name = t.name OFFSET 0
        ) AS g ON true
        WHERE stage = 0 OR g.name IS NOT NULL
    ), line AS MATERIALIZED (
        SELECT
            g.*, coalesce(cardinality(first.rows), 0) AS n, first.rows, first.ids, first.ranks,
            first.lanes
        FROM gate AS g CROSS JOIN LATERAL (
            SELECT
                array_agg(b.row) AS rows, array_agg(b.id) AS ids, array_agg(b.rank) AS ranks,
                array_agg(b.lane) AS lanes
            FROM (
                SELECT b.ctid AS row, b.id, b.rank, b.lane FROM holdfast.blocked AS b
                WHERE b.gate = g.name ORDER BY b.rank, b.id LIMIT g.room
            ) AS b
        ) AS first
    ), moved AS (
        DELETE FROM holdfast.blocked AS b
        WHERE b.ctid = ANY (ARRAY(SELECT unnest(l.rows) FROM line AS l))
        RETURNING
            b.*, b AS parked, b.gates IS NULL OR b.passed + 1 = cardinality(b.gates) AS is_through,
            CASE WHEN stage = 4 THEN holdfast.rank_behind(b.gate, b.id, b.rank, at) ELSE b.rank END
            AS new_rank
    ), lined_up AS (
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
        SELECT
            m.id, m.new_rank, m.lane, m.attempt,
            CASE WHEN m.new_rank = m.rank THEN m.flags ELSE m.flags | 4 END,
            all_late OR m.new_rank < coalesce(floor.pending, m.new_rank), m.expires_at
        FROM moved AS m LEFT JOIN holdfast.floor ON floor.lane = m.lane WHERE m.is_through
    ), reranked AS (
        INSERT INTO holdfast.extra (id, rank)
        SELECT m.id, m.new_rank FROM moved AS m WHERE m.new_rank <> m.rank
        ON CONFLICT (id) DO UPDATE SET rank = excluded.rank
    ), after AS MATERIALIZED (
        SELECT
            l.*, coalesce(l.held, 0) + l.n AS now_held, recent.starts AS now_starts,
            CASE WHEN l.n = 1000 THEN at ELSE recent.starts[2] + l.period END AS now_look_at,
            stage > 0 AND l.held + l.n <= 0 AND l.pinned IS NULL AND recent.starts = '{}' AND (
                l.n < l.room
                OR NOT EXISTS (SELECT 1 FROM holdfast.blocked AS b WHERE b.gate = l.name)
            ) AS is_idle
        FROM line AS l CROSS JOIN LATERAL (
            SELECT CASE WHEN l.starts = '{}' THEN l.starts
                ELSE holdfast.recent_starts(l.starts, l.period, at) END AS starts
        ) AS recent
        WHERE l.is_there
    ), written AS (
        INSERT INTO holdfast.gate (name, held, starts, look_at, holder, lane, rank)
        SELECT
            a.name, CASE WHEN stage > 0 THEN a.now_held ELSE 0 END, a.now_starts, a.now_look_at,
            CASE WHEN stage = 2 THEN a.ids[1] END, CASE WHEN stage = 2 THEN a.lanes[1] END,
            CASE WHEN stage = 2 THEN a.ranks[1] END
        FROM after AS a
        WHERE NOT a.is_idle
        AND (a.n > 0 OR a.gone > 0 OR a.look_at IS DISTINCT FROM a.now_look_at)
        ON CONFLICT (name) DO UPDATE SET
            held = excluded.held, starts = excluded.starts, look_at = excluded.look_at,
            holder = excluded.holder, lane = excluded.lane, rank = excluded.rank
    ), by_lane AS (
        SELECT
            m.lane, count(*) AS n,
            count(*) FILTER (WHERE m.id NOT IN (SELECT unnest(fresh))) AS told
        FROM moved AS m WHERE m.is_through GROUP BY m.lane
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT kind, b.lane, sign * b.n
        FROM by_lane AS b CROSS JOIN (VALUES ('blocked', -1), ('ready', 1)) AS change (kind, sign)
    )
    SELECT
        (SELECT array_agg(a.row) FROM after AS a WHERE a.is_idle),
        (SELECT array_agg(m.parked) FROM moved AS m WHERE NOT m.is_through),
        (SELECT array_agg(m.new_rank) FROM moved AS m WHERE NOT m.is_through),
        (SELECT string_agg(b.lane || '=' || b.told, ' ') FROM by_lane AS b WHERE b.told > 0)
    INTO idle, onward, ranks, passed;
    IF idle IS NOT NULL THEN
        DELETE FROM holdfast.gate AS g WHERE g.ctid = ANY (idle);
    END IF;
    IF passed IS NOT NULL THEN
        PERFORM holdfast.note_passed(passed);
    END IF;
    IF onward IS NULL THEN
        RETURN '{}';
    END IF;
    INSERT INTO holdfast.blocked (gate, rank, id, lane, attempt, flags, expires_at, passed, gates)
    SELECT
        b.gates[b.passed + 2], ranks[b.ordinality], b.id, b.lane, b.attempt,
        CASE WHEN ranks[b.ordinality] = b.rank THEN b.flags ELSE b.flags | 4 END, b.expires_at,
        b.passed + 1, b.gates
    FROM unnest(onward) WITH ORDINALITY AS b;
    RETURN ARRAY(SELECT DISTINCT b.gates[b.passed + 2] FROM unnest(onward) AS b);
END $$;

-- How a task shows: by the place it is in.
CREATE OR REPLACE FUNCTION holdfast.state_of(id uuid) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN coalesce(
        (SELECT done.state::text FROM holdfast.done WHERE done.id = state_of.id),
        (SELECT 'running' FROM holdfast.run WHERE run.id = state_of.id),
        (
            SELECT CASE WHEN waiting.retrying THEN 'retrying' ELSE 'queued' END
            FROM holdfast.waiting WHERE waiting.id = state_of.id
        ),
        (
            SELECT 'blocked'
            FROM holdfast.task LEFT JOIN holdfast.extra ON extra.id = task.id
            CROSS JOIN LATERAL (
                SELECT 1 FROM holdfast.blocked AS b
                WHERE b.gate = ANY (holdfast.passes_of(task.passes, task.lock_key))
                AND b.rank = coalesce(extra.rank, task.rank) AND b.id = task.id LIMIT 1
            ) AS there
            WHERE task.id = state_of.id
        ),
        'queued'
    );
END $$;
