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

-- name: ask_to_drain
SELECT holdfast.ask_to_drain($1::text);

-- name: requests
SELECT
    ARRAY(SELECT s.id::text FROM holdfast.stop AS s WHERE s.worker = w.number ORDER BY s.id),
    w.drain_requested
FROM holdfast.worker AS w WHERE w.id = $1::text;
