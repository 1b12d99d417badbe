-- name: look
-- All that a claim must know before it writes, in one row: is the worker alive, do the lanes and
-- pauses we remember still hold, is anything due or expired, which lanes have something ready, when
-- is something due next, and when is a gate to be looked at again.
SELECT
    (SELECT status FROM worker WHERE id = :worker),
    (SELECT max(id) FROM lane),
    (SELECT json_group_array(key) FROM record WHERE kind = 'pause'),
    EXISTS (SELECT 1 FROM task WHERE expiry <= :now),
    EXISTS (SELECT 1 FROM lane CROSS JOIN task ON task.lane = lane.id WHERE task.due_at <= :now),
    (
        SELECT json_group_array(mine.value) FROM json_each(:lanes) AS mine
        WHERE EXISTS (SELECT 1 FROM task WHERE place = 1 AND lane = mine.value)
    ),
    (
        SELECT min(due) FROM (
            SELECT (
                SELECT min(due_at) FROM task WHERE lane = mine.value AND due_at IS NOT NULL
            ) AS due
            FROM json_each(:lanes) AS mine
        )
    ),
    (SELECT min(look_at) FROM gate WHERE look_at IS NOT NULL);

-- name: first_in_line
-- The first of all lanes by (rank, id): a merge of their heads. A recursive query with ORDER BY keeps
-- its rows in a queue and takes the smallest first; each one taken puts its successor in the lane
-- into the queue. So the cost is one probe per lane and one per task taken, whatever the backlog.
-- The successor is looked for in two steps because a comparison of pairs would only use the index
-- for the rank, and thousands may have the same.
WITH RECURSIVE line (seq, lane, rank, id) AS (
    SELECT task.seq, task.lane, task.rank, task.id
    FROM json_each(:lanes) AS mine
    CROSS JOIN task ON task.seq = (
        SELECT seq FROM task WHERE place = 1 AND lane = mine.value ORDER BY rank, id LIMIT 1
    )
    UNION ALL
    SELECT task.seq, task.lane, task.rank, task.id
    FROM line
    CROSS JOIN task ON task.seq = coalesce(
        (
            SELECT seq FROM task
            WHERE place = 1 AND lane = line.lane AND rank = line.rank AND id > line.id
            ORDER BY id LIMIT 1
        ),
        (
            SELECT seq FROM task
            WHERE place = 1 AND lane = line.lane AND rank > line.rank
            ORDER BY rank, id LIMIT 1
        )
    )
    ORDER BY 3, 4
    LIMIT :limit
)
SELECT
    json_group_array(json_array(
        seq, rank, id, lane, length(payload), attempt, name, max_retries, timeout,
        iif(
            cause = 'submitted' AND coalesce(lock_key, retry, trace, owner) IS NULL,
            iif(coalesce(gates, counts) IS NULL, NULL, 1),
            json_array(
                lock_key, charged, crash_count, retry, cause, trace, owner,
                coalesce(lock_key, gates, counts) IS NOT NULL
            )
        )
    )),
    CAST(group_concat(payload, '') AS BLOB),
    json_group_array(seq), count(*), count(lock_key), count(expiry),
    count(nullif(instr(gates, '["rate",'), 0))
FROM (SELECT task.* FROM line CROSS JOIN task ON task.seq = line.seq);

-- name: first_in_lane
-- The same for a single lane, which is common and a quarter cheaper.
-- One row comes back, not one per task: see `switch_interval`. Payloads are strung together, to be cut by
-- their lengths: JSON could not hold them byte by byte. What a first attempt of a plain task has no
-- use for is left out: JSON costs by the value. It is 1 if the task has to do with gates.
SELECT
    json_group_array(json_array(
        seq, rank, id, lane, length(payload), attempt, name, max_retries, timeout,
        iif(
            cause = 'submitted' AND coalesce(lock_key, retry, trace, owner) IS NULL,
            iif(coalesce(gates, counts) IS NULL, NULL, 1),
            json_array(
                lock_key, charged, crash_count, retry, cause, trace, owner,
                coalesce(lock_key, gates, counts) IS NOT NULL
            )
        )
    )),
    CAST(group_concat(payload, '') AS BLOB),
    json_group_array(seq), count(*), count(lock_key), count(expiry),
    count(nullif(instr(gates, '["rate",'), 0))
FROM (SELECT * FROM task WHERE place = 1 AND lane = :lanes ->> 0 ORDER BY rank, id LIMIT :limit);

-- name: start
UPDATE task
SET place = 3, state = 'running', attempt = attempt + 1, worker_id = :worker, started_at = :now
WHERE seq IN (SELECT value FROM json_each(:seqs));

-- name: no_longer_expiring
UPDATE task SET expiry = NULL WHERE seq IN (SELECT value FROM json_each(?));

-- name: give_fences
UPDATE task SET fence = given.column2
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: due
SELECT json_group_array(json_array(
    seq, lane, place, state, lock_key, gates, passed, counts, iif(awaited, id, NULL)
))
FROM (
    SELECT
        task.seq, task.lane, task.place, task.state, task.lock_key, task.gates, task.passed,
        task.counts, task.awaited, task.id
    FROM lane CROSS JOIN task ON task.lane = lane.id
    WHERE task.due_at <= :now
    LIMIT :limit
);

-- name: line_up
-- Due tasks without gates are ready; the others stand before their first.
UPDATE task
SET place = iif(coalesce(lock_key, gates) IS NULL, 1, 2),
    state = iif(coalesce(lock_key, gates) IS NULL, 'queued', 'blocked'),
    waits_for = iif(
        gates IS NULL, 'lock:' || lock_key, (gates ->> '$[0][0]') || ':' || (gates ->> '$[0][1]')
    ),
    passed = 0, due_at = NULL
WHERE seq IN (SELECT value FROM json_each(?));

-- name: expired
SELECT json_group_array(json_array(
    seq, lane, place, state, lock_key, gates, passed, counts, iif(awaited, id, NULL)
))
FROM (
    SELECT
        task.seq, task.lane, task.place, task.state, task.lock_key, task.gates, task.passed,
        task.counts, task.awaited, task.id
    FROM task WHERE expiry <= :now ORDER BY expiry LIMIT :limit
);
