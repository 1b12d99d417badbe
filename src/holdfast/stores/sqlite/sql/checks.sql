-- name: quick_check
PRAGMA quick_check(20);

-- name: journal_mode
PRAGMA journal_mode;

-- name: synchronous
PRAGMA synchronous;

-- name: places
-- What `place` says and what the other columns say must agree.
SELECT id, place, state FROM task
WHERE CASE place
    WHEN 0 THEN state NOT IN ('queued', 'retrying') OR due_at IS NOT run_at
    WHEN 1 THEN state <> 'queued' OR holds IS NOT lock_key
    WHEN 2 THEN state <> 'blocked' OR waits_for IS NULL OR waits_for IS NOT iif(
        gates IS NULL, 'lock:' || lock_key,
        (gates ->> ('$[' || passed || '][0]')) || ':' || (gates ->> ('$[' || passed || '][1]'))
    )
    WHEN 3 THEN state <> 'running' OR holds IS NOT lock_key OR worker_id IS NULL
        OR started_at IS NULL OR attempt < 1
    WHEN 4 THEN state NOT IN ('completed', 'failed', 'cancelled', 'dead_letter')
        OR finished_at IS NULL OR dead_end IS NOT nullif(state, 'completed')
    ELSE true
END
OR (place <> 0 AND due_at IS NOT NULL)
OR (place IN (0, 4) AND holds IS NOT NULL)
OR (holds IS NOT NULL AND holds IS NOT lock_key)
OR (place <> 2 AND waits_for IS NOT NULL)
OR (place <> 4 AND (dead_end IS NOT NULL OR finished_at IS NOT NULL OR ended IS NOT NULL))
OR live_key IS NOT iif(place < 4, unique_key, NULL)
OR expiry IS NOT iif(place < 3, expires_at, NULL)
LIMIT 20;

-- name: told_holders
SELECT name, held FROM gate
UNION ALL SELECT 'lock:' || holds, count(*) FROM task WHERE holds IS NOT NULL GROUP BY 1;

-- name: real_holders
-- Latches are never held, and rates only until the start.
SELECT (gate.value ->> 0) || ':' || (gate.value ->> 1), count(*)
FROM task CROSS JOIN json_each(
    coalesce(task.gates, json_array(json_array('lock', task.lock_key)))
) AS gate
WHERE coalesce(task.gates, task.lock_key) IS NOT NULL AND gate.value ->> 0 <> 'latch'
AND CASE task.place
    WHEN 1 THEN true
    WHEN 2 THEN gate.key < task.passed
    WHEN 3 THEN gate.value ->> 0 <> 'rate'
END
GROUP BY 1;

-- name: idle_gates
SELECT name FROM gate
WHERE held <= 0 AND pinned IS NULL AND starts IS NULL AND name NOT GLOB 'latch:*'
AND NOT EXISTS (SELECT 1 FROM task WHERE waits_for = gate.name)
LIMIT 20;

-- name: gates_to_wait_for
-- Those that somebody stands before, but for those that the next claim looks at.
SELECT DISTINCT waits_for FROM task
WHERE waits_for IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM gate WHERE name = waits_for AND look_at <= :now);

-- name: real_counts
-- What the tally should say.
SELECT CASE place WHEN 0 THEN 'waiting' WHEN 1 THEN 'ready' ELSE 'blocked' END || ' ' || lane,
    count(*)
FROM task WHERE place < 3 GROUP BY 1
UNION ALL
SELECT 'state:' || state || ' 0', count(*) FROM task
WHERE place = 4 OR state = 'retrying' GROUP BY 1;

-- name: told_counts
SELECT kind || ' ' || key, n FROM tally
WHERE kind IN ('waiting', 'ready', 'blocked') OR kind GLOB 'state:*';

-- name: lost_lanes
SELECT id FROM task WHERE lane NOT IN (SELECT id FROM lane) LIMIT 20;

-- name: lost_history
SELECT DISTINCT task FROM (SELECT task FROM attempt UNION ALL SELECT task FROM event)
WHERE task NOT IN (SELECT seq FROM task) LIMIT 20;

-- name: lost_keys
SELECT key FROM idempotency WHERE task_id NOT IN (SELECT id FROM task) LIMIT 20;

-- name: indexes
-- But for those that SQLite makes by itself, for keys.
SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL;
