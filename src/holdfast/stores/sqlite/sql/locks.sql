-- name: moves
-- Who should step forward, and who step back for it. The first in line deserves the key if nobody
-- holds it, or if the holder has not started and stands behind.
SELECT json_group_array(json_array(first, first_lane, holder, holder_lane))
FROM (
    SELECT
        first.seq AS first, first.lane AS first_lane,
        holder.seq AS holder, holder.lane AS holder_lane
    FROM json_each(?) AS wanted
    CROSS JOIN task AS first ON first.seq = (
        SELECT seq FROM task WHERE waits_for = wanted.value ORDER BY rank, id LIMIT 1
    )
    LEFT JOIN task AS holder ON holder.holds = wanted.value
    WHERE holder.seq IS NULL
    OR (holder.place = 1 AND (first.rank, first.id) < (holder.rank, holder.id))
);

-- name: step_back
UPDATE task SET place = 2, state = 'blocked', holds = NULL, waits_for = lock_key
WHERE seq IN (SELECT value FROM json_each(?));

-- name: step_forward
UPDATE task SET place = 1, state = 'queued', holds = lock_key, waits_for = NULL
WHERE seq IN (SELECT value FROM json_each(?));

-- name: holder
SELECT id FROM task WHERE holds = ?;

-- name: next_in_line
SELECT task.lane, count(*)
FROM json_each(?) AS wanted CROSS JOIN task ON task.holds = wanted.value
WHERE task.place = 1
GROUP BY task.lane;
