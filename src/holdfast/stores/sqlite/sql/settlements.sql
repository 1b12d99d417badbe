-- name: complete
-- The common end: tasks without gates and keys that succeeded. Their results come as one JSON object by row
-- number: bound one by one they would take a third longer. `+` keeps the planner from starting at
-- the running tasks: it must go from the given numbers to their rows.
UPDATE task
SET place = 4, state = 'completed', ended = 'completed', finished_at = ?,
    charged = ?, crash_count = ?, result = CAST(given.value AS BLOB), error = NULL, reason = NULL
FROM json_each(?) AS given
WHERE task.seq = CAST(given.key AS INTEGER)
    AND task.attempt = ?
    AND +task.worker_id = ?
    AND +task.place = 3
    AND coalesce(
        task.holds, task.live_key, task.gates, task.counts, task.awaited
    ) IS NULL;

-- name: to_complete
-- The same for tasks that have to do with gates: what they leave behind; `complete_gated` follows,
-- under the same conditions.
SELECT json_group_array(json_array(
    3, lock_key, gates, 0, counts, iif(awaited, task.id, NULL), json('false')
))
FROM json_each(:results) AS given CROSS JOIN task
WHERE task.seq = CAST(given.key AS INTEGER)
    AND task.attempt = :attempt
    AND +task.worker_id = :worker_id
    AND +task.place = 3
    AND task.live_key IS NULL;

-- name: complete_gated
UPDATE task
SET place = 4, state = 'completed', ended = 'completed', finished_at = :now, holds = NULL,
    charged = :charged, crash_count = :crash_count, result = CAST(given.value AS BLOB),
    error = NULL, reason = NULL
FROM json_each(:results) AS given
WHERE task.seq = CAST(given.key AS INTEGER)
    AND task.attempt = :attempt
    AND +task.worker_id = :worker_id
    AND +task.place = 3
    AND task.live_key IS NULL;

-- name: keep_alike
-- Attempts of tasks without gates that failed alike; `go_on_alike` follows, under the same conditions.
INSERT INTO attempt (task, number, cause, worker_id, started_at, ended_at, ended, charged, error)
SELECT
    task.seq, task.attempt, task.cause, task.worker_id, task.started_at, :now, :ended,
    :charged > task.charged, :error
FROM json_each(:delays) AS given CROSS JOIN task
WHERE task.seq = CAST(given.key AS INTEGER)
    AND task.attempt = :attempt
    AND +task.worker_id = :worker_id
    AND +task.place = 3
    AND coalesce(task.lock_key, task.gates) IS NULL
    AND task.cancel_requested IS NULL;

-- name: go_on_alike
UPDATE task
SET holds = NULL, expiry = expires_at, place = :place, state = :state, run_at = :now + given.value,
    due_at = iif(:place = 0, :now + given.value, NULL), waits_for = NULL,
    charged = :charged, crash_count = :crash_count, result = NULL, error = :error, reason = NULL,
    cause = coalesce(:cause, cause)
FROM json_each(:delays) AS given
WHERE task.seq = CAST(given.key AS INTEGER)
    AND task.attempt = :attempt
    AND +task.worker_id = :worker_id
    AND +task.place = 3
    AND coalesce(task.lock_key, task.gates) IS NULL
    AND task.cancel_requested IS NULL
RETURNING lane;

-- name: find
SELECT
    seq, id, lane, place, attempt, worker_id, cause, started_at, ended, charged, lock_key,
    cancel_requested, gates, counts, awaited
FROM task WHERE id IN (SELECT value FROM json_each(?));

-- name: finish
UPDATE task
SET place = 4, finished_at = ?, holds = NULL, live_key = NULL,
    state = given.column2, ended = given.column3, ended_charged = given.column4,
    charged = given.column5, crash_count = given.column6, result = given.column7,
    error = given.column8, reason = given.column9, cause = coalesce(given.column10, cause),
    dead_end = nullif(given.column2, 'completed')
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: go_on
UPDATE task
SET holds = NULL, expiry = expires_at,
    place = given.column2, state = given.column3, run_at = given.column4,
    due_at = iif(given.column2 = 0, given.column4, NULL),
    waits_for = given.column12, passed = 0,
    charged = given.column5, crash_count = given.column6, result = given.column7,
    error = given.column8, reason = given.column9, cause = coalesce(given.column10, cause),
    lane = given.column11
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: stand_behind
UPDATE task SET gates = given.column2
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: report
UPDATE task
SET progress = coalesce(:progress, progress), cost_units = cost_units + :units,
    tokens_in = tokens_in + :tokens_in, tokens_out = tokens_out + :tokens_out
WHERE seq = :seq;

-- name: end_idle
UPDATE task
SET place = 4, state = :state, dead_end = :state, reason = :reason, finished_at = :now,
    due_at = NULL, expiry = NULL, holds = NULL, waits_for = NULL, live_key = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs));

-- name: request_cancel
UPDATE task SET cancel_requested = 1 WHERE seq IN (SELECT value FROM json_each(?));
