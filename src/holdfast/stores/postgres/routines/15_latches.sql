-- Latches: gates that open once, when they were counted down or their task has ended. Who passes them
-- then is `04_gates.sql`'s to say.

-- See to it that the ends of unfinished tasks open their latches: of those of these latches that
-- nobody made. Their rows are marked under a lock, so that either the end is found here or the mark
-- there. A task may be on its way from one place to another: then it is looked for once more.
CREATE OR REPLACE FUNCTION holdfast.stand_behind(latches text[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    wanted uuid[] := ARRAY(
        SELECT substr(missing.latch, 7)::uuid
        FROM (
            SELECT l FROM unnest(latches) AS l
            WHERE l ~ '^latch:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            EXCEPT SELECT g.name FROM holdfast.gate AS g WHERE g.name = ANY (latches)
        ) AS missing (latch)
    );
    marked uuid[] := '{}';
BEGIN
    FOR round IN 1 .. 100 LOOP
        EXIT WHEN wanted = '{}';
        marked := marked || holdfast.mark(wanted);
        wanted := ARRAY(
            SELECT w.id FROM (SELECT unnest(wanted) EXCEPT SELECT unnest(marked)) AS w (id)
            CROSS JOIN LATERAL (SELECT 1 FROM holdfast.task AS t WHERE t.id = w.id OFFSET 0) AS t
            LEFT JOIN LATERAL (
                SELECT true AS is_over FROM holdfast.done AS d WHERE d.id = w.id OFFSET 0
            ) AS d ON true
            WHERE d.is_over IS NULL
        );
    END LOOP;
    INSERT INTO holdfast.gate (name, "left")
    SELECT 'latch:' || m.id, 1 FROM (SELECT DISTINCT unnest(marked) AS id) AS m ORDER BY 1
    ON CONFLICT DO NOTHING;
END $$;

-- Mark these tasks wherever they are found; answers which were. Who stands before a gate is marked with
-- that locked, as whatever changes a line is done.
CREATE OR REPLACE FUNCTION holdfast.mark(ids uuid[]) RETURNS uuid[]
LANGUAGE plpgsql
AS $$
DECLARE
    marked uuid[];
    passed text;
    lines text[];
    ready tid[];
BEGIN
    WITH mine AS (
        SELECT r.id FROM holdfast.run AS r WHERE r.id = ANY (ids) ORDER BY r.id FOR UPDATE
    ), done AS (
        UPDATE holdfast.run AS r SET flags = r.flags | 64::smallint
        WHERE r.id = ANY (ARRAY(SELECT mine.id FROM mine)) RETURNING r.id
    )
    SELECT array_agg(d.id) INTO marked FROM done AS d;
    WITH done AS (
        UPDATE holdfast.waiting AS w SET flags = w.flags | 64::smallint
        WHERE w.id = ANY (ids) RETURNING w.id
    )
    SELECT marked || array_agg(d.id) INTO marked FROM done AS d;
    SELECT
        array_agg(r.row) FILTER (WHERE r.row IS NOT NULL),
        array_agg(b.gate) FILTER (WHERE b.gate IS NOT NULL)
    INTO ready, lines FROM holdfast.places_of(ids) AS p
    LEFT JOIN LATERAL (
        SELECT r.ctid AS row FROM holdfast.ready AS r
        WHERE r.lane = p.lane AND r.late IN (false, true) AND r.rank = p.rank AND r.id = p.id
        OFFSET 0
    ) AS r ON true
    LEFT JOIN LATERAL (
        SELECT b.gate FROM holdfast.blocked AS b
        WHERE b.gate = ANY (p.passes) AND b.rank = p.rank AND b.id = p.id OFFSET 0
    ) AS b ON true;
    WITH done AS (
        UPDATE holdfast.ready AS r SET flags = r.flags | 64::smallint
        WHERE r.ctid = ANY (ready) RETURNING r.id, r.lane
    )
    SELECT marked || array_agg(d.id), string_agg(d.lane || '=1', ' ') INTO marked, passed
    FROM done AS d WHERE d.id = ANY (ids);
    IF passed IS NOT NULL THEN -- claims pass over locked rows
        PERFORM holdfast.note_passed(passed);
    END IF;
    IF lines IS NOT NULL THEN
        PERFORM holdfast.hold_gates(lines);
        WITH done AS (
            UPDATE holdfast.blocked AS b SET flags = b.flags | 64::smallint
            WHERE b.ctid = ANY (ARRAY(
                SELECT b.row FROM holdfast.places_of(ids) AS p CROSS JOIN LATERAL (
                    SELECT b.ctid AS row FROM holdfast.blocked AS b
                    WHERE b.gate = ANY (lines) AND b.gate = ANY (p.passes)
                    AND b.rank = p.rank AND b.id = p.id OFFSET 0
                ) AS b
            )) RETURNING b.id
        )
        SELECT marked || array_agg(d.id) INTO marked FROM done AS d;
    END IF;
    RETURN coalesce(marked, '{}');
END $$;

-- Where tasks are to be looked for that wait for their turn.
CREATE OR REPLACE FUNCTION holdfast.places_of(ids uuid[])
RETURNS TABLE (id uuid, lane integer, rank bigint, passes text[])
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        t.id, t.lane, coalesce(e.rank, t.rank), holdfast.passes_of(t.passes, t.lock_key)
    FROM (SELECT unnest(places_of.ids) AS id) AS i
    CROSS JOIN LATERAL (SELECT * FROM holdfast.task WHERE task.id = i.id OFFSET 0) AS t
    LEFT JOIN LATERAL (SELECT * FROM holdfast.extra WHERE extra.id = i.id OFFSET 0) AS e ON true;
END;

-- Count latches up; those that there are not are made.
CREATE OR REPLACE FUNCTION holdfast.count_up(latches text[], numbers integer[], failed integer[]) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.gate AS g (name, "left", failed)
    SELECT c.latch, sum(c.number), sum(c.failed)
    FROM unnest(count_up.latches, count_up.numbers, count_up.failed) AS c (latch, number, failed)
    GROUP BY c.latch ORDER BY c.latch
    ON CONFLICT (name) DO UPDATE SET
        "left" = g.left + excluded.left, failed = g.failed + excluded.failed
    WHERE g.opened_at IS NULL
$$;

-- Tasks are started anew that these latches counted, once for each: of those that had completed, and
-- of the others. Open ones are closed again.
CREATE OR REPLACE FUNCTION holdfast.count_again(good text[], bad text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF good = '{}' AND bad = '{}' THEN
        RETURN;
    END IF;
    INSERT INTO holdfast.gate (name) SELECT DISTINCT unnest(good || bad) ORDER BY 1
    ON CONFLICT DO NOTHING;
    UPDATE holdfast.gate AS g SET
        "left" = g.left + c.number, failed = greatest(0, g.failed - c.failed), opened_at = NULL,
        look_at = CASE WHEN g.opened_at IS NULL THEN g.look_at END
    FROM (
        SELECT l.name, count(*) AS number, count(*) FILTER (WHERE l.is_bad) AS failed
        FROM (SELECT unnest(good), false UNION ALL SELECT unnest(bad), true) AS l (name, is_bad)
        GROUP BY l.name
    ) AS c
    WHERE g.name = c.name;
END $$;

-- Count latches down, those that there are and that are closed. `numbers`, `failed`: NULL means one,
-- and none.
CREATE OR REPLACE FUNCTION holdfast.count_down(
    latches text[], numbers integer[], failed integer[], at bigint
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_variable
BEGIN
    PERFORM holdfast.hold_gates(latches);
    INSERT INTO holdfast.gate (name, "left", failed, opened_at)
    SELECT
        c.latch, greatest(0, g.left - c.number), g.failed + c.failed,
        CASE WHEN g.left <= c.number THEN at END
    FROM (
        SELECT c.latch, sum(coalesce(c.number, 1)) AS number, sum(coalesce(c.failed, 0)) AS failed
        FROM unnest(latches, numbers, failed) AS c (latch, number, failed) GROUP BY c.latch
    ) AS c
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.gate WHERE gate.name = c.latch AND gate.opened_at IS NULL OFFSET 0
    ) AS g
    ON CONFLICT (name) DO UPDATE SET
        "left" = excluded.left, failed = excluded.failed, opened_at = excluded.opened_at;
END $$;

-- What a commit says of gates, after all else: latches count down, capacities are set. Answers whom
-- gates have let pass.
CREATE OR REPLACE FUNCTION holdfast.change_gates(
    latches text[], numbers integer[], failed integer[], gates text[], capacities integer[],
    now bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    at bigint := holdfast.now_us(change_gates.now);
BEGIN
    PERFORM holdfast.count_down(latches, numbers, failed, at);
    INSERT INTO holdfast.gate AS g (name, capacity, pinned)
    SELECT c.name, 0, c.capacity FROM unnest(gates, capacities) AS c (name, capacity) ORDER BY c.name
    ON CONFLICT (name) DO UPDATE SET pinned = excluded.pinned;
    PERFORM holdfast.settle_gates(latches || gates, '{}', at);
    RETURN holdfast.passed_on();
END $$;
