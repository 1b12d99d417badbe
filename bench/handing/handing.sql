-- The prototype's claim: ids and ranks come from Redis, so nothing is searched for and no claimer
-- walks over rows that another has locked. The row changes are the product's (claim_groups).
--
-- What the product decides here and this does not: paused queues, capabilities, expiry, tasks that
-- come due, locks, earlier attempts, order across priorities. That is to the prototype's advantage.

-- name: install
CREATE OR REPLACE FUNCTION holdfast.claim_handed(
    worker text, of_lane integer, handed uuid[], at_ranks bigint[]
) RETURNS TABLE (ids uuid[], ranks bigint[], payloads bytea[], name text)
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
    at bigint := holdfast.now_us(NULL);
    me integer;
    one record;
BEGIN
    SELECT w.number INTO me FROM holdfast.worker AS w
    WHERE w.id = claim_handed.worker AND w.status IN ('active', 'draining') FOR SHARE;
    IF me IS NULL THEN
        RAISE EXCEPTION 'worker % is gone', claim_handed.worker USING ERRCODE = 'HF001';
    END IF;
    IF cardinality(handed) = 1 THEN -- the short way, as in the product
        DELETE FROM holdfast.ready AS r
        WHERE r.lane = of_lane AND NOT r.late AND r.rank = at_ranks[1] AND r.id = handed[1]
        RETURNING r.id, r.rank, r.lane, r.attempt + 1 AS attempt INTO one;
        IF one.id IS NULL THEN
            RETURN;
        END IF;
        INSERT INTO holdfast.run (id, started_at, lane, attempt, worker, flags)
        VALUES (one.id, at, one.lane, one.attempt, me, 0);
        INSERT INTO holdfast.tally (kind, key, n)
        VALUES ('ready', one.lane, -1), ('running', one.lane, 1);
        RETURN QUERY SELECT ARRAY[one.id], ARRAY[one.rank], ARRAY[task.payload], task.name
        FROM holdfast.task WHERE task.id = one.id;
        RETURN;
    END IF;
    RETURN QUERY
    WITH wanted AS (
        SELECT row.ctid FROM unnest(handed, at_ranks) AS h (id, rank)
        CROSS JOIN LATERAL (
            SELECT r.ctid FROM holdfast.ready AS r
            WHERE r.lane = of_lane AND NOT r.late AND r.rank = h.rank AND r.id = h.id
            FOR UPDATE SKIP LOCKED
        ) AS row
    ), taken AS (
        DELETE FROM holdfast.ready AS r WHERE r.ctid = ANY (ARRAY(SELECT ctid FROM wanted))
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
    SELECT array_agg(taken.id), array_agg(taken.rank), array_agg(task.payload), task.name
    FROM taken CROSS JOIN LATERAL (
        SELECT t.* FROM holdfast.task AS t WHERE t.id = taken.id OFFSET 0
    ) AS task
    GROUP BY task.name;
END $$;

-- name: claim
SELECT ids, payloads, name FROM holdfast.claim_groups($1::text, NULL, '{}', $2::integer);

-- name: claim_handed
SELECT ids, payloads, name
FROM holdfast.claim_handed($1::text, $2::integer, $3::uuid[], $4::bigint[]);

-- name: complete
SELECT holdfast.complete($1::text, $2::uuid[], NULL, $3::bytea[]);

-- name: ready
SELECT id, rank FROM holdfast.ready ORDER BY rank, id;

-- name: lane
SELECT lane FROM holdfast.ready LIMIT 1;

-- name: sweep
VACUUM holdfast.ready, holdfast.run, holdfast.tally;
