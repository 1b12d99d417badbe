-- Made by `release.py` with the code of the last release (dd262f3). Never edited.
-- name: add
SELECT n, task_id, outcome, state FROM holdfast.add_rows(
    $1::text[], $2::text[], $3::bytea[], $4::integer[], $5::bigint[], $6::bigint[],
    $7::double precision[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[],
    $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[],
    $20::text[], $21::bigint, $22::bigint, false, $23::text[], $24::text[]
);

-- name: add_alike
SELECT holdfast.add_alike(
    $1::uuid[], $2::bytea[], $3::text, $4::integer, $5::bigint, $6::bigint, $7::double precision,
    $8::text, $9::text, $10::text, $11::text, $12::text[], $13::bigint
);

-- name: pictures
SELECT * FROM holdfast.pictures($1::text[]) ORDER BY id;

-- name: attempts
SELECT a.number, a.cause, w.id AS worker_id, a.started_at, a.ended_at, a.ended, a.charged, a.error
FROM holdfast.attempt AS a LEFT JOIN holdfast.worker AS w ON w.number = a.worker
WHERE a.id = $1::text::uuid ORDER BY a.number;

-- name: events
SELECT at, kind, attempt, worker_id, detail FROM holdfast.event
WHERE id = $1::text::uuid ORDER BY seq;

-- name: cancel_requests
SELECT s.id::text FROM holdfast.stop AS s JOIN holdfast.worker AS w ON w.number = s.worker
WHERE w.id = $1::text ORDER BY s.id;

-- name: now
SELECT holdfast.now_us($1::bigint);

-- name: ahead
SELECT holdfast.ahead($1::text, $2::bigint, $3::text::uuid, $4::integer);

-- name: count_ready
SELECT count(*)
FROM (
    SELECT 1
    FROM holdfast.lane
    CROSS JOIN (VALUES (false), (true)) AS late (late)
    CROSS JOIN LATERAL (
        SELECT 1 FROM holdfast.ready AS r
        WHERE r.lane = lane.id AND r.late = late.late AND r.rank <= $3::bigint
        LIMIT $4::bigint
    ) AS aged
    WHERE lane.priority = $2::text AND lane.queue = coalesce($1::text, lane.queue)
    LIMIT $4::bigint
) AS counted;

-- name: lock_holder
SELECT holder::text FROM holdfast.lock WHERE key = $1::text;

-- name: next_in_line
SELECT l.lane, count(*)
FROM holdfast.lock AS l
JOIN holdfast.ready AS r
ON r.lane = l.lane AND r.late IN (false, true) AND r.rank = l.rank AND r.id = l.holder
WHERE l.key = ANY ($1::text[])
GROUP BY l.lane;

-- name: claim
SELECT * FROM holdfast.claim_groups($1::text, $2::text[], $3::text[], $4::integer, $5::bigint);

-- name: orphans
SELECT holdfast.orphans($1::integer);

-- name: save
SELECT n, holder FROM holdfast.save(
    $1::text, $2::uuid[], $3::integer[], $4::bytea[], $5::text[], $6::integer[], $7::text[],
    $8::text[], $9::text[], $10::integer[], $11::integer[], $12::bytea[], $13::text[],
    $14::bigint[], $15::text[], $16::text[], $17::bigint, $18::text[]
);

-- name: report
SELECT n, holder FROM holdfast.report(
    $1::text[], $2::integer[], $3::text[], $4::text[], $5::double precision[], $6::bigint[],
    $7::bigint[], $8::text[], $9::bigint
);

-- name: count_refusals
INSERT INTO holdfast.tally VALUES ('refused', 0, $1::integer);

-- name: cancel
SELECT holdfast.cancel($1::text[], $2::text[], $3::bigint, $4::text, $5::text);

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
SELECT c.relname::text
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'holdfast' AND c.relname IN ('ready', 'run', 'waiting', 'blocked', 'tally')
AND pg_stat_get_dead_tuples(c.oid)
    > greatest($1::bigint, pg_stat_get_live_tuples(c.oid) / 10)
ORDER BY c.relname;

-- name: worth_it
SELECT c.relname::text
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'holdfast' AND c.relname IN ('ready', 'run')
AND $1::bigint > pg_stat_get_live_tuples(c.oid) / 10
ORDER BY c.relname;

-- name: left_dead
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

-- name: room
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

-- name: register
SELECT holdfast.register(
    $1::text, $2::text, $3::integer, $4::text, $5::text[], $6::text[], $7::integer, $8::integer,
    $9::text, $10::bigint, $11::bigint, $12::text
);

-- name: beat
SELECT holdfast.beat($1::text, $2::integer, $3::text, $4::bigint, $5::text);

-- name: workers
SELECT
    id, host, pid, version, queues, capabilities, capacity, load, status, beats, started_at, beat_at,
    kind, drain_requested, blocked_by
FROM holdfast.worker WHERE NOT forgotten ORDER BY number DESC;

-- name: bury
SELECT holdfast.bury($1::text, $2::bigint);

-- name: retire
SELECT holdfast.retire($1::text);

-- name: ask_to_drain
SELECT holdfast.ask_to_drain($1::text);

-- name: drain_requested
SELECT drain_requested FROM holdfast.worker WHERE id = $1::text;

-- name: lanes
SELECT id, queue, requires, priority FROM holdfast.lane;

-- name: lane_of
SELECT holdfast.lane_of($1::text, $2::text[], $3::text);

-- name: pause
SELECT holdfast.pause($1::text);

-- name: resume
SELECT holdfast.resume($1::text);

-- name: is_paused
SELECT EXISTS (SELECT 1 FROM holdfast.paused_queue WHERE queue = $1::text);

-- name: ended_last_minute
SELECT coalesce(sum(t.n), 0)::bigint
FROM holdfast.tally AS t JOIN holdfast.lane ON lane.id = t.lane
WHERE t.kind IN ('completed', 'failed', 'dead_letter')
AND t.key > ($2::bigint - 60000000) / 1000000 AND lane.queue = $1::text;

-- name: demand
SELECT lane.requires, sum(t.n)::bigint
FROM holdfast.tally AS t JOIN holdfast.lane ON lane.id = t.key
WHERE t.kind IN ('ready', 'waiting') AND lane.requires <> '{}'
GROUP BY lane.requires HAVING sum(t.n) > 0;

-- name: numbers
SELECT holdfast.numbers($1::bigint)::text;

-- name: add_within
SELECT task_id, outcome, state
FROM holdfast.add_within($1::pg_catalog.text::pg_catalog.json, $2::double precision, $3::bigint) ORDER BY "position";

-- name: holds_lease
SELECT holdfast.holds_lease($1::pg_catalog.text, $2::integer, $3::pg_catalog.text);

-- name: complete_within
SELECT holdfast.complete_within(
    $1::pg_catalog.text, $2::integer, $3::pg_catalog.text, $4::integer, $5::integer,
    $6::pg_catalog.bytea, $7::pg_catalog.text,
    $8::double precision, $9::bigint, $10::bigint, $11::pg_catalog.text, $12::bigint
);

-- name: was_completed
SELECT holdfast.was_completed($1::text, $2::integer, $3::text);
