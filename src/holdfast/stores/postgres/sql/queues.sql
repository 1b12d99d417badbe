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

-- name: numbers
SELECT holdfast.numbers($1::bigint)::text;
