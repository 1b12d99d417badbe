-- name: lanes
SELECT id, queue, requires, priority FROM holdfast.lane;

-- name: lane_of
SELECT holdfast.lane_of($1::text, $2::text[], $3::text);

-- name: is_paused
SELECT EXISTS (SELECT 1 FROM holdfast.record WHERE kind = 'pause' AND key = $1::text);

-- name: ended_last_minute
-- Of a queue, up to this instant.
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
