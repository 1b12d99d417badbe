-- The raw limit on PostgreSQL: the row changes of a drain, set by set, without the product.
-- Four tables of the design, with the columns of a plain task: task, ready -> run -> done.

-- name: tables
CREATE SCHEMA raw;
CREATE TABLE raw.task (
    id uuid NOT NULL PRIMARY KEY, rank bigint NOT NULL, created_at bigint NOT NULL,
    run_at bigint NOT NULL, lane integer NOT NULL, max_retries integer NOT NULL,
    timeout double precision, name text NOT NULL, payload bytea NOT NULL
);
CREATE TABLE raw.ready (
    id uuid NOT NULL, rank bigint NOT NULL, lane integer NOT NULL, attempt integer NOT NULL,
    PRIMARY KEY (lane, rank, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE TABLE raw.run (
    id uuid NOT NULL PRIMARY KEY, started_at bigint NOT NULL, attempt integer NOT NULL,
    worker integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE TABLE raw.done (
    id uuid NOT NULL PRIMARY KEY, started_at bigint NOT NULL, finished_at bigint NOT NULL,
    state smallint NOT NULL, attempt integer NOT NULL, worker integer NOT NULL, result bytea
);

-- name: fill
WITH made AS (
    INSERT INTO raw.task (id, rank, created_at, run_at, lane, max_retries, timeout, name, payload)
    SELECT
        ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, n, n, n, 1, 3, 600,
        'noop', convert_to('{"number":' || n || '}', 'UTF8')
    FROM generate_series(1, $1::bigint) AS n
    RETURNING id, rank
)
INSERT INTO raw.ready (id, rank, lane, attempt) SELECT id, rank, 1, 0 FROM made;

-- name: pin_plans
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
SET jit = off;

-- name: drain_within
-- Nothing leaves the server. Two commits for each batch, as for a worker.
CREATE PROCEDURE raw.drain(batch integer, worker_number integer) LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[];
BEGIN
    LOOP
        WITH taken AS (
            DELETE FROM raw.ready WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM raw.ready WHERE lane = 1 ORDER BY rank, id LIMIT batch
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING id, attempt
        ), started AS (
            INSERT INTO raw.run (id, started_at, attempt, worker)
            SELECT id, extract(epoch FROM clock_timestamp()) * 1000000, attempt + 1, worker_number
            FROM taken
            RETURNING id
        )
        SELECT array_agg(id) INTO ids FROM started;
        COMMIT;
        EXIT WHEN ids IS NULL;
        WITH ended AS (
            DELETE FROM raw.run WHERE id = ANY (ids) AND worker = worker_number
            RETURNING id, started_at, attempt, worker
        )
        INSERT INTO raw.done (id, started_at, finished_at, state, attempt, worker, result)
        SELECT id, started_at, extract(epoch FROM clock_timestamp()) * 1000000, 4, attempt, worker,
            '1'::bytea
        FROM ended;
        COMMIT;
    END LOOP;
END $$;

-- name: claim
WITH taken AS (
    DELETE FROM raw.ready WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM raw.ready WHERE lane = 1 ORDER BY rank, id LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, attempt
), started AS (
    INSERT INTO raw.run (id, started_at, attempt, worker)
    SELECT id, extract(epoch FROM clock_timestamp()) * 1000000, attempt + 1, $2 FROM taken
    RETURNING id, attempt
)
SELECT started.id, started.attempt, task.name, task.payload
FROM started JOIN raw.task USING (id);

-- name: settle
WITH outcome AS (
    SELECT * FROM unnest($1::uuid[], $2::integer[], $3::bytea[]) AS o (id, attempt, result)
), ended AS (
    DELETE FROM raw.run USING outcome
    WHERE run.id = outcome.id AND run.attempt = outcome.attempt AND run.worker = $4
    RETURNING run.id, run.started_at, run.attempt, run.worker, outcome.result
)
INSERT INTO raw.done (id, started_at, finished_at, state, attempt, worker, result)
SELECT id, started_at, extract(epoch FROM clock_timestamp()) * 1000000, 4, attempt, worker, result
FROM ended;
