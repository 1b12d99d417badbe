-- The row changes of a drain, as plain statements without the product.

-- name: limit_lane
SELECT holdfast.lane_of('default', '{}', 'normal');

-- name: limit_fill
WITH added AS (
    INSERT INTO holdfast.task (
        id, rank, created_at, run_at, lane, max_retries, timeout, name, payload
    )
    SELECT
        (left(holdfast.first_id(now())::text, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
        n, n, n, $1::integer, 3, 30, 'limit', '{"number": 1, "text": "as long as a small one"}'
    FROM generate_series(1, $2::integer) AS n
    RETURNING id, rank, lane
)
INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late)
SELECT id, rank, lane, 0, 0, false FROM added;

-- name: limit_vacuum
VACUUM ANALYZE holdfast.ready, holdfast.run, holdfast.task;

-- name: limit_pin
SELECT
    set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
    set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false);

-- name: limit_drain
-- Until nothing is ready. What a worker would read of each task is read here too, and counted instead
-- of sent. `FOR` would keep a snapshot over the commits, so the loop is a plain one.
DO $$
DECLARE
    taken uuid[];
    bytes bigint;
BEGIN
    LOOP
        WITH first AS (
            DELETE FROM holdfast.ready AS r WHERE r.ctid = ANY (ARRAY(
                SELECT f.ctid FROM holdfast.ready AS f WHERE f.lane = 1 AND NOT f.late
                ORDER BY f.rank, f.id LIMIT 1000 FOR UPDATE SKIP LOCKED
            ))
            RETURNING r.id, r.lane
        ), started AS (
            INSERT INTO holdfast.run (id, started_at, lane, attempt, worker, flags)
            SELECT first.id, 1, first.lane, 1, 1, 0 FROM first
        )
        SELECT array_agg(first.id), sum(length(task.payload)) INTO taken, bytes
        FROM first JOIN holdfast.task ON task.id = first.id;
        COMMIT;
        EXIT WHEN taken IS NULL;
        WITH ended AS (
            DELETE FROM holdfast.run AS r USING unnest(taken) AS t (id)
            WHERE r.id = t.id AND r.attempt = 1 AND r.worker = 1
            RETURNING r.id, r.started_at, r.attempt
        )
        INSERT INTO holdfast.done (
            id, finished_at, started_at, state, attempt, worker, flags, ended, result
        )
        SELECT e.id, 2, e.started_at, 'completed', e.attempt, 1, 0, 'completed', 'null'
        FROM ended AS e;
        COMMIT;
    END LOOP;
END $$;

-- name: limit_drop
DROP SCHEMA IF EXISTS holdfast CASCADE;
