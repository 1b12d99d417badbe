-- name: add_to_tally
INSERT INTO tally (kind, key, n)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true
ON CONFLICT DO UPDATE SET n = n + excluded.n;

-- name: next_fences
INSERT INTO tally (kind, key, n) VALUES ('fence', 0, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n
RETURNING n;

-- name: counts
-- Everything but the minutes gone by.
SELECT kind, key, n FROM tally WHERE kind NOT GLOB 'ended:*' OR key > :since;

-- name: demand
SELECT lane.requires, sum(tally.n) FROM tally JOIN lane ON lane.id = tally.key
WHERE tally.kind IN ('ready', 'waiting') AND lane.requires <> '[]'
GROUP BY lane.requires HAVING sum(tally.n) > 0;

-- name: running_by_lane
SELECT lane, count(*) FROM task WHERE place = 3 GROUP BY lane;

-- name: oldest_ready
-- When the task that waits longest became eligible, by lane. A lane's order is by age, but for
-- retries, which keep their place and begin to wait anew: so the first hundred are looked at.
SELECT head.value, (
    SELECT min(run_at) FROM (
        SELECT run_at FROM task WHERE place = 1 AND lane = head.value ORDER BY rank, id LIMIT 100
    )
)
FROM json_each(:lanes) AS head;

-- name: ended_lately
-- Of the last that ended this way since then, a thousand at most: how many there are, and how many of
-- them in the queue. Found by their time, newest first, so that a busy minute costs no more.
SELECT
    count(*),
    count(*) FILTER (WHERE lane IN (SELECT id FROM lane WHERE queue = :queue))
FROM (
    SELECT lane FROM task
    WHERE place = 4 AND dead_end IS :dead_end AND finished_at > :since
    ORDER BY finished_at DESC LIMIT 1000
);

-- name: ended_in_all
SELECT coalesce(sum(n), 0) FROM tally WHERE kind = :kind AND key > :second;

-- name: forget_minutes
DELETE FROM tally WHERE kind GLOB 'ended:*' AND key < ?;
