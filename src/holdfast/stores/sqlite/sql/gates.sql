-- name: rows
-- In the order of the fields of `core.passing.GateRow`.
SELECT json_group_array(json_array(
    name, capacity, period, pinned, held, json(starts), "left", failed, opened_at, look_at
))
FROM json_each(?) AS wanted CROSS JOIN gate ON gate.name = wanted.value;

-- name: put
INSERT OR REPLACE INTO gate
SELECT * FROM (VALUES /* rows */) WHERE column1 IS NOT NULL;

-- name: forget
DELETE FROM gate WHERE name IN (SELECT value FROM json_each(?));

-- name: let_go
UPDATE gate SET held = held - ? WHERE name IN (SELECT value FROM json_each(?));

-- name: changed
SELECT json_group_array(gate.name)
FROM json_each(?) AS said CROSS JOIN gate ON gate.name = said.value ->> 0
WHERE (gate.capacity, gate.period) <> (said.value ->> 1, said.value ->> 2);

-- name: announce
UPDATE gate SET capacity = said.value ->> 1, period = said.value ->> 2
FROM json_each(?) AS said
WHERE gate.name = said.value ->> 0;

-- name: starts
SELECT 'rate:' || (one.value ->> 1), count(*)
FROM json_each(?) AS started
CROSS JOIN task ON task.seq = started.value
CROSS JOIN json_each(task.gates) AS one
WHERE one.value ->> 0 = 'rate'
GROUP BY 1;

-- name: contested
-- Those that somebody stands before.
SELECT json_group_array(wanted.value) FROM json_each(?) AS wanted
WHERE EXISTS (SELECT 1 FROM task WHERE waits_for = wanted.value);

-- name: forget_idle
-- What `GateRow.is_idle` says, of gates that nobody stands before; latches are open or to be counted.
DELETE FROM gate
WHERE name IN (SELECT value FROM json_each(?))
AND held <= 0 AND pinned IS NULL AND starts IS NULL AND "left" <= 0 AND opened_at IS NULL
AND NOT EXISTS (SELECT 1 FROM task WHERE waits_for = gate.name);

-- name: lines
-- The first who stand before each of the gates.
SELECT json_group_array(json_array(wanted.value, json((
    SELECT json_group_array(json_array(rank, id, json(gates), passed, lock_key, seq, lane))
    FROM (
        SELECT rank, id, gates, passed, lock_key, seq, lane FROM task
        WHERE waits_for = wanted.value ORDER BY rank, id LIMIT :most
    )
))))
FROM json_each(:names) AS wanted;

-- name: lock_lines
-- The first who stands before each of the locks, and its holder: unless that has started, stands
-- before another gate or stands first, as nobody passes then.
SELECT json_group_array(json_array(
    wanted.value,
    json_array(
        first.rank, first.id, json(first.gates), first.passed, first.lock_key, first.seq, first.lane
    ),
    iif(holder.seq IS NULL, NULL, json_array(
        holder.rank, holder.id, json(holder.gates), holder.passed, holder.lock_key, holder.seq,
        holder.lane
    ))
))
FROM json_each(?) AS wanted
CROSS JOIN task AS first ON first.seq = (
    SELECT seq FROM task WHERE waits_for = wanted.value ORDER BY rank, id LIMIT 1
)
LEFT JOIN task AS holder ON holder.holds = substr(wanted.value, 6)
WHERE holder.seq IS NULL
OR (holder.place = 1 AND (first.rank, first.id) < (holder.rank, holder.id));

-- name: unfinished
-- Those of the latches that will be opened by the end of a task.
SELECT json_group_array(wanted.value) FROM json_each(?) AS wanted
WHERE EXISTS (SELECT 1 FROM task WHERE id = substr(wanted.value, 7) AND place < 4);

-- name: await_ends
UPDATE task SET awaited = 1
WHERE id IN (SELECT substr(value, 7) FROM json_each(?)) AND place < 4;

-- name: park
-- Somebody stands before another gate than before, or again.
UPDATE task
SET place = 2, state = 'blocked', waits_for = given.column2, passed = given.column3,
    holds = iif(given.column4, lock_key, NULL)
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: rerank
UPDATE task SET rank = given.column2
FROM (VALUES /* rows */) AS given
WHERE task.seq = given.column1;

-- name: make_ready
UPDATE task SET place = 1, state = 'queued', holds = lock_key, waits_for = NULL
WHERE seq IN (SELECT value FROM json_each(?));

-- name: due
SELECT json_group_array(name) FROM (
    SELECT name FROM gate WHERE look_at <= :now ORDER BY look_at LIMIT :limit
);

-- name: forget_latches
DELETE FROM gate WHERE name IN (
    SELECT name FROM gate
    WHERE opened_at < :oldest AND NOT EXISTS (SELECT 1 FROM task WHERE waits_for = gate.name)
    ORDER BY opened_at LIMIT :limit
);

-- name: page
SELECT name FROM gate WHERE name > :after ORDER BY name LIMIT :limit;

-- name: page_of_locks
-- Held ones. `first` is where in the index to begin.
SELECT 'lock:' || holds FROM task
WHERE holds >= :first AND 'lock:' || holds > :after ORDER BY holds LIMIT :limit;

-- name: holders
SELECT wanted.value, task.id
FROM json_each(?) AS wanted CROSS JOIN task ON task.holds = substr(wanted.value, 6)
WHERE substr(wanted.value, 1, 5) = 'lock:';

-- name: parked
SELECT wanted.value, (
    SELECT count(*) FROM (SELECT 1 FROM task WHERE waits_for = wanted.value LIMIT :cap)
)
FROM json_each(:names) AS wanted;

-- name: standing_before
SELECT count(*) FROM (
    SELECT 1 FROM task WHERE waits_for = :gate AND (rank, id) < (:rank, :id) LIMIT :cap
);
