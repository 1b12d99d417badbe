-- name: note_all
INSERT INTO event (task, at, kind) SELECT value, :at, :kind FROM json_each(:seqs);

-- name: note
INSERT INTO event (task, at, kind, attempt, worker_id, detail)
SELECT * FROM (VALUES /* rows */) WHERE column1 IS NOT NULL;

-- name: keep_attempts
-- Copies ended attempts out of their tasks' rows, because the tasks go on.
INSERT INTO attempt (task, number, cause, worker_id, started_at, ended_at, ended, charged, error)
SELECT * FROM (VALUES /* rows */) WHERE column1 IS NOT NULL;

-- name: keep_last_attempts
-- The same for tasks that ended and are started again by an operator. One that was cancelled before
-- its first start has no attempt.
INSERT INTO attempt (task, number, cause, worker_id, started_at, ended_at, ended, charged, error)
SELECT seq, attempt, cause, worker_id, started_at, finished_at, ended, ended_charged, error
FROM task WHERE seq IN (SELECT value FROM json_each(?)) AND ended IS NOT NULL;

-- name: was_saved
SELECT 1 FROM attempt
WHERE task = :seq AND number = :attempt AND worker_id = :worker AND ended = :ended;

-- name: attempts
SELECT * FROM attempt WHERE task = ? ORDER BY number;

-- name: events
SELECT * FROM event WHERE task = ? ORDER BY seq;

-- name: forget_attempts
DELETE FROM attempt WHERE task IN (SELECT value FROM json_each(?));

-- name: forget_events
DELETE FROM event WHERE task IN (SELECT value FROM json_each(?));
