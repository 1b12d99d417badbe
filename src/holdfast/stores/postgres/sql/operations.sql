-- name: cancel
SELECT ids, holdfast.passed_on()
FROM holdfast.cancel($1::text[], $2::text[], $3::bigint, $4::text, $5::text) AS ids;

-- name: requeue
SELECT holdfast.requeue(
    $1::text[], $2::text[], $3::text::json, $4::double precision, $5::integer, $6::bigint
);

-- name: discard
SELECT holdfast.discard($1::text[], $2::text[]);

-- name: prune
SELECT holdfast.prune($1::bigint, $2::bigint, $3::integer, $4::bigint);

-- name: drop_partition
SELECT holdfast.drop_partition($1::bigint, $2::bigint, $3::bigint);

-- name: add_partitions
SELECT holdfast.add_partitions();

-- name: littered
-- By the server's own counters, which may be a second old.
SELECT c.relname::text
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'holdfast' AND c.relname IN ('ready', 'run', 'waiting', 'blocked', 'tally')
AND pg_stat_get_dead_tuples(c.oid)
    > greatest($1::bigint, pg_stat_get_live_tuples(c.oid) / 10)
ORDER BY c.relname;

-- name: worth_it
-- After so many tasks have passed through.
SELECT c.relname::text
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'holdfast' AND c.relname IN ('ready', 'run')
AND $1::bigint > pg_stat_get_live_tuples(c.oid) / 10
ORDER BY c.relname;

-- name: left_dead
-- As the last vacuum reported it.
SELECT coalesce(sum(pg_stat_get_dead_tuples(c.oid)), 0)::bigint
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'holdfast' AND c.relname IN ('ready', 'run');

-- name: fold_tally
SELECT holdfast.fold_tally();

-- name: vacuum_ready
VACUUM (SKIP_LOCKED, TRUNCATE off) holdfast.ready;

-- name: vacuum_run
VACUUM (SKIP_LOCKED, TRUNCATE off) holdfast.run;

-- name: vacuum_waiting
VACUUM (SKIP_LOCKED, TRUNCATE off) holdfast.waiting;

-- name: vacuum_blocked
VACUUM (SKIP_LOCKED, TRUNCATE off) holdfast.blocked;

-- name: vacuum_tally
VACUUM (SKIP_LOCKED, TRUNCATE off) holdfast.tally;

-- name: table_sizes
-- How large the tables are that tasks pass through, how many rows have come in so far, and whether
-- those that are there would fit into a quarter of it: 40 rows to a page, where 70 or more fit.
-- They are counted by our own numbers: the server's may be wrong until the next vacuum.
SELECT
    c.relname::text,
    size.pages,
    pg_stat_get_tuples_inserted(c.oid),
    size.pages * 40 / 4 > coalesce(
        (SELECT sum(t.n)::bigint FROM holdfast.tally AS t WHERE t.kind = counted.kind), 0
    )
FROM (
    VALUES ('ready', 'ready'), ('run', 'running'), ('waiting', 'waiting'), ('blocked', 'blocked')
) AS counted (name, kind)
JOIN pg_class AS c ON c.relname = counted.name
JOIN pg_namespace AS s ON s.oid = c.relnamespace AND s.nspname = 'holdfast'
CROSS JOIN LATERAL (
    SELECT pg_relation_size(c.oid::regclass) / current_setting('block_size')::bigint AS pages
) AS size;

-- name: pages
SELECT pg_relation_size(c.oid::regclass) / current_setting('block_size')::bigint
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'holdfast' AND c.relname = $1::text;

-- name: shrink_ready
VACUUM (SKIP_LOCKED, TRUNCATE on) holdfast.ready;

-- name: shrink_run
VACUUM (SKIP_LOCKED, TRUNCATE on) holdfast.run;

-- name: shrink_waiting
VACUUM (SKIP_LOCKED, TRUNCATE on) holdfast.waiting;

-- name: shrink_blocked
VACUUM (SKIP_LOCKED, TRUNCATE on) holdfast.blocked;
