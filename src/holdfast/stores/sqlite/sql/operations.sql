-- name: columns_to_cancel
SELECT
    task.seq, task.lane, task.place, task.state, task.lock_key, task.gates, task.passed, task.counts,
    iif(task.awaited, task.id, NULL), task.id, task.cancel_requested

-- name: columns_to_requeue
-- `taken`: another unfinished task has its unique key now.
SELECT
    task.seq, task.lane, task.place, task.state, task.lock_key, task.gates, task.awaited, task.id,
    task.name, task.unique_key, task.finished_at, task.counts,
    task.unique_key IS NOT NULL AND EXISTS (
        SELECT 1 FROM task AS other
        WHERE other.live_key = task.unique_key AND other.name = task.name
        AND other.live_key IS NOT NULL AND other.seq <> task.seq
    ) AS taken

-- name: columns_to_forget
SELECT task.seq, task.state, task.finished_at, task.id

-- name: renew
UPDATE task
SET place = given.column2, state = iif(given.column2 = 2, 'blocked', 'queued'),
    run_at = given.column3, waits_for = given.column4, rank = given.column5,
    due_at = iif(given.column2 = 0, given.column3, NULL), passed = 0,
    live_key = unique_key, dead_end = NULL,
    expires_at = NULL, charged = 0, crash_count = 0, cause = 'operator',
    ended = NULL, ended_charged = 0, finished_at = NULL,
    result = NULL, error = NULL, reason = NULL, progress = NULL, cancel_requested = NULL
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: hurry
UPDATE task
SET place = given.column2, run_at = given.column3, waits_for = given.column4, passed = 0,
    rank = min(rank, given.column5),
    state = CASE given.column2 WHEN 0 THEN state WHEN 1 THEN 'queued' ELSE 'blocked' END,
    due_at = iif(given.column2 = 0, given.column3, NULL)
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: old
-- One walk per kind of end, each from its oldest.
SELECT task.seq, task.state, task.finished_at
FROM (
    VALUES (NULL, :oldest), ('failed', :oldest), ('cancelled', :oldest),
    ('dead_letter', :oldest_dead_letter)
) AS age
CROSS JOIN task ON task.dead_end IS age.column1 AND task.finished_at < age.column2
WHERE task.place = 4
LIMIT :limit;

-- name: forget_tasks
DELETE FROM task WHERE seq IN (SELECT value FROM json_each(?));

-- name: forget_their_keys
DELETE FROM idempotency WHERE key IN (
    SELECT idempotency_key FROM task
    WHERE seq IN (SELECT value FROM json_each(:seqs)) AND idempotency_key IS NOT NULL
) AND task_id IN (
    SELECT id FROM task WHERE seq IN (SELECT value FROM json_each(:seqs))
);

-- name: forget_used_up_keys
DELETE FROM idempotency WHERE key IN (
    SELECT key FROM idempotency WHERE expires_at <= :now LIMIT :limit
);
