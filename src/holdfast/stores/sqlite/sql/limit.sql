-- The statements of the raw limit (`limit.py`): the same row changes as a drain, set by set.

-- name: lane
INSERT INTO lane VALUES (1, 'default', '[]', 'normal');

-- name: fill
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO task (
    id, lane, place, state, rank, name, payload, created_at, run_at, max_retries, timeout
)
SELECT
    printf('01900000-0000-7000-8000-%012x', n), 1, 1, 'queued', n, 'noop',
    CAST(printf('{"n":%d}', n) AS BLOB), n, n, 3, 600000000
FROM numbers;

-- name: start
UPDATE task
SET place = 3, state = 'running', attempt = attempt + 1, worker_id = 'bench-worker',
    started_at = :now, ended = NULL
WHERE seq IN (
    SELECT seq FROM task WHERE place = 1 AND lane = 1 ORDER BY rank, id LIMIT :batch
);

-- name: finish
UPDATE task
SET place = 4, state = 'completed', result = CAST(rank AS BLOB), finished_at = :now,
    ended = 'completed'
WHERE worker_id = 'bench-worker' AND place = 3;

-- name: count_up
INSERT INTO tally (kind, key, n) VALUES ('state:completed', 0, :batch)
ON CONFLICT (kind, key) DO UPDATE SET n = n + excluded.n;
