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

-- name: wake
SELECT holdfast.wake($1::text[]);

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
-- A holder that is not among the ready ones runs.
SELECT l.lane, count(*)
FROM holdfast.lock AS l
JOIN holdfast.ready AS r
ON r.lane = l.lane AND r.late IN (false, true) AND r.rank = l.rank AND r.id = l.holder
WHERE l.key = ANY ($1::text[])
GROUP BY l.lane;
