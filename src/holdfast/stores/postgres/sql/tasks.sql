-- name: add
SELECT n, task_id, outcome, state FROM holdfast.add_rows(
    $1::text[], $2::text[], $3::bytea[], $4::integer[], $5::bigint[], $6::bigint[],
    $7::double precision[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[],
    $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[],
    $20::text[], $21::bigint, $22::bigint, false, $23::text[], $24::text[], $25::text[], $26::text[],
    $27::text[]
)
UNION ALL SELECT 0, p.passed, NULL, NULL FROM holdfast.passed_on() AS p (passed)
WHERE p.passed IS NOT NULL;

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

-- name: gates
SELECT name, capacity, pinned, held, parked, holder::text, opens_at, "left", failed, is_open
FROM holdfast.gates WHERE name > $2::text AND ($1::text[] IS NULL OR name = ANY ($1::text[]))
ORDER BY name LIMIT $3::bigint;

-- name: ahead_at_gate
SELECT count(*)
FROM (
    SELECT 1 FROM holdfast.blocked
    WHERE gate = $1::text AND (rank, id) < ($2::bigint, $3::text::uuid) LIMIT $4::bigint
) AS line;

-- name: close_latches
UPDATE holdfast.gate AS g SET opened_at = NULL, look_at = NULL
WHERE g.name = ANY ($1::text[]) AND g.opened_at IS NOT NULL;

-- name: count_up
SELECT holdfast.count_up($1::text[], $2::integer[], $3::integer[]);

-- name: change_gates
SELECT holdfast.change_gates(
    $1::text[], $2::integer[], $3::integer[], $4::text[], $5::integer[], $6::bigint
);
