-- name: owe
-- For those of the tasks, all just ended, that have a callback.
INSERT INTO callback (task, ended_at, due_at, tries)
SELECT seq, :now, :now, 0 FROM task
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND callback IS NOT NULL;

-- name: forget
DELETE FROM callback WHERE task IN (SELECT value FROM json_each(?));

-- name: any_due
SELECT EXISTS (SELECT 1 FROM callback WHERE due_at <= ?);

-- name: due
SELECT task.seq, task.id, task.callback, callback.tries + 1, callback.ended_at
FROM callback CROSS JOIN task ON task.seq = callback.task
WHERE callback.due_at <= :now
ORDER BY callback.due_at, task.id
LIMIT :limit;

-- name: hand_out
UPDATE callback SET due_at = :until, tries = tries + 1
WHERE task IN (SELECT value FROM json_each(:seqs));

-- name: held
SELECT callback.task
FROM task CROSS JOIN callback ON callback.task = task.seq
WHERE task.id = ? AND callback.tries = ? AND callback.ended_at = ?;

-- name: put_off
UPDATE callback SET due_at = :due WHERE task = :seq;
