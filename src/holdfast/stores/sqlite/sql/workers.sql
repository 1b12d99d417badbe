-- name: register
INSERT INTO worker (
    id, host, pid, version, queues, capabilities, capacity, load, status, beats, started_at, beat_at,
    kind
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: beat
UPDATE worker
SET beats = beats + 1, beat_at = :now, load = coalesce(:load, load), status = coalesce(:status, status),
    blocked_by = coalesce(:blocked_by, blocked_by)
WHERE id = :id AND status IN ('active', 'draining');

-- name: workers
SELECT * FROM worker ORDER BY seq DESC;

-- name: bury
UPDATE worker SET status = 'dead'
WHERE id = :id AND status IN ('active', 'draining') AND beats = coalesce(:beats, beats);

-- name: ask_to_drain
UPDATE worker SET drain_requested = 1 WHERE id = ? AND status IN ('active', 'draining');

-- name: requests
-- A row for each of the few tasks to stop; one without a task if there are none.
SELECT worker.drain_requested, task.id
FROM worker
LEFT JOIN task
ON task.place = 3 AND task.worker_id = worker.id AND task.cancel_requested IS NOT NULL
WHERE worker.id = ?
ORDER BY task.id;

-- name: orphans
-- From the few distinct workers that run something to their tasks.
SELECT task.*
FROM (SELECT DISTINCT worker_id FROM task WHERE place = 3) AS holder
CROSS JOIN task ON task.place = 3 AND task.worker_id = holder.worker_id
WHERE NOT EXISTS (
    SELECT 1 FROM worker
    WHERE worker.id = holder.worker_id AND worker.status IN ('active', 'draining')
)
ORDER BY task.id
LIMIT ?;

-- name: forget
DELETE FROM worker WHERE status IN ('stopped', 'dead') AND beat_at < ?;
