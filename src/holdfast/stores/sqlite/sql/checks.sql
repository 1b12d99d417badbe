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
    WHEN 2 THEN state <> 'blocked' OR waits_for IS NOT lock_key OR lock_key IS NULL
    WHEN 3 THEN state <> 'running' OR holds IS NOT lock_key OR worker_id IS NULL
        OR started_at IS NULL OR attempt < 1
    WHEN 4 THEN state NOT IN ('completed', 'failed', 'cancelled', 'dead_letter')
        OR finished_at IS NULL OR dead_end IS NOT nullif(state, 'completed')
    ELSE true
END
OR (place <> 0 AND due_at IS NOT NULL)
OR (place NOT IN (1, 3) AND holds IS NOT NULL)
OR (place <> 2 AND waits_for IS NOT NULL)
OR (place <> 4 AND (dead_end IS NOT NULL OR finished_at IS NOT NULL OR ended IS NOT NULL))
OR live_key IS NOT iif(place < 4, unique_key, NULL)
OR expiry IS NOT iif(place < 3, expires_at, NULL)
LIMIT 20;

-- name: idle_locks
-- Somebody waits for a key that nobody holds, or whose holder stands behind and has not started.
SELECT waiting.id, waiting.waits_for
FROM task AS waiting
LEFT JOIN task AS holder ON holder.holds = waiting.waits_for
WHERE waiting.waits_for IS NOT NULL
AND (
    holder.seq IS NULL
    OR (holder.place = 1 AND (waiting.rank, waiting.id) < (holder.rank, holder.id))
)
LIMIT 20;

-- name: real_counts
-- What the tally should say.
SELECT CASE place WHEN 0 THEN 'waiting' WHEN 1 THEN 'ready' ELSE 'blocked' END, lane, count(*)
FROM task WHERE place < 3 GROUP BY 1, 2
UNION ALL
SELECT 'state:' || state, 0, count(*) FROM task
WHERE place = 4 OR state = 'retrying' GROUP BY 1;

-- name: told_counts
SELECT kind, key, n FROM tally
WHERE kind IN ('waiting', 'ready', 'blocked') OR kind GLOB 'state:*';

-- name: lost_lanes
SELECT id FROM task WHERE lane NOT IN (SELECT id FROM lane) LIMIT 20;

-- name: lost_history
SELECT DISTINCT task FROM (SELECT task FROM attempt UNION ALL SELECT task FROM event)
WHERE task NOT IN (SELECT seq FROM task) LIMIT 20;

-- name: lost_callbacks
SELECT task FROM callback
WHERE task NOT IN (SELECT seq FROM task WHERE place = 4 AND callback IS NOT NULL) LIMIT 20;

-- name: lost_keys
SELECT key FROM idempotency WHERE task_id NOT IN (SELECT id FROM task) LIMIT 20;
