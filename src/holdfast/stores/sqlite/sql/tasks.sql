-- name: add_tasks
-- The columns that follow from `place` are derived here. An id that exists already is left alone.
INSERT INTO task (
    created_at, id, lane, place, rank, name, payload, run_at, max_retries, timeout, retry,
    expires_at, unique_key, idempotency_key, lock_key, tags, owner, trace, parent_id,
    state, due_at, expiry, waits_for, live_key
)
SELECT
    ?, *,
    iif(column3 = 2, 'blocked', 'queued'),
    iif(column3 = 0, column7, NULL),
    column11,
    iif(column3 = 2, 'lock:' || column14, NULL),
    column12
FROM (VALUES /* rows */)
WHERE column1 IS NOT NULL
ON CONFLICT (id) DO NOTHING;

-- name: set_callbacks
-- On their own: a column more for every new task would cost all of them.
UPDATE task SET callback = given.column2
FROM (VALUES /* rows */) AS given
WHERE task.id = given.column1;

-- name: set_gates
-- Likewise. `waits_for` is of those that stand before a gate already.
UPDATE task SET gates = given.column2, counts = given.column3,
    waits_for = iif(place = 2, given.column4, NULL)
FROM (VALUES /* rows */) AS given
WHERE task.id = given.column1;

-- name: states
SELECT id, state FROM task WHERE id IN (SELECT value FROM json_each(?));

-- name: known_before
-- Those of the ids that were there before the last rows were written: new rows have the highest
-- numbers, without a gap.
SELECT id FROM task
WHERE id IN (SELECT value FROM json_each(:ids))
AND seq <= (SELECT max(seq) FROM task) - :written;

-- name: unique_keys_taken
SELECT task.name, task.live_key, task.id
FROM json_each(?) AS wanted
CROSS JOIN task ON task.name = wanted.value ->> 0 AND task.live_key = wanted.value ->> 1
WHERE task.live_key IS NOT NULL;

-- name: idempotency_keys_seen
SELECT key, task_id, fingerprint
FROM idempotency
WHERE key IN (SELECT value FROM json_each(:keys)) AND expires_at > :now;

-- name: remember_idempotency_keys
INSERT OR REPLACE INTO idempotency (key, task_id, fingerprint, expires_at)
SELECT * FROM (VALUES /* rows */) WHERE column1 IS NOT NULL;

-- name: get
SELECT * FROM task WHERE id = ?;

-- name: by_seqs
SELECT * FROM task WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY id;

-- name: standing_in_line
SELECT count(*) FROM (
    SELECT 1
    FROM lane CROSS JOIN task ON task.place = 1 AND task.lane = lane.id
    WHERE lane.queue = :queue AND (task.rank, task.id) < (:rank, :id)
    LIMIT :cap
);

-- name: count_ready
SELECT count(*) FROM (
    SELECT 1
    FROM lane CROSS JOIN task ON task.place = 1 AND task.lane = lane.id AND task.rank <= :rank
    WHERE lane.priority = :priority AND lane.queue = coalesce(:queue, lane.queue)
    LIMIT :limit
);
