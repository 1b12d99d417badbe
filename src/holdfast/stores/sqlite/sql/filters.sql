-- Parts of a query that `filters.py` puts together. All of them are fixed text; values are bound.

-- name: from_all
FROM task

-- name: from_children
FROM task INDEXED BY task_parent

-- name: from_unique_key
FROM task INDEXED BY task_by_unique_key

-- name: from_idempotency_key
FROM task INDEXED BY task_by_idempotency_key

-- name: from_places
-- When there are few tasks in the places asked for, they are found there and not among all.
FROM (

-- name: waiting
SELECT seq FROM task WHERE due_at IS NOT NULL

-- name: ready
SELECT seq FROM task WHERE place = 1

-- name: blocked
SELECT seq FROM task WHERE waits_for IS NOT NULL

-- name: running
SELECT seq FROM task WHERE place = 3

-- name: or_there
UNION ALL

-- name: places_end
) AS there CROSS JOIN task ON task.seq = there.seq

-- name: how_many
SELECT coalesce(sum(n), 0) FROM tally WHERE kind IN (SELECT value FROM json_each(?));

-- name: page_newest
ORDER BY task.id DESC LIMIT :limit

-- name: page_oldest
ORDER BY task.id LIMIT :limit

-- name: page_last_ended
ORDER BY task.finished_at DESC, task.id DESC LIMIT :limit

-- name: page_first_ended
ORDER BY task.finished_at, task.id LIMIT :limit

-- name: and_ended
-- Behind the clause of the states: only then is the index by the time of the end of use.
AND task.place = 4

-- name: oldest_first
ORDER BY task.id

-- name: count_of
SELECT count(*) FROM (SELECT 1

-- name: up_to_limit
LIMIT :limit)

-- name: after
task.id < :after

-- name: later_than
task.id > :later_than

-- name: ended_after
(task.finished_at, task.id) < (:ended_after, :edge)

-- name: ended_later_than
(task.finished_at, task.id) > (:ended_later_than, :edge)

-- name: edge
task.id <> :edge

-- name: ids
task.id IN (SELECT value FROM json_each(:ids))

-- name: states
+task.state IN (SELECT value FROM json_each(:states))

-- name: elsewhere_than
+task.place <> :elsewhere_than

-- name: dead_end
task.dead_end = :dead_end

-- name: name
+task.name = :name

-- name: names
+task.name IN (SELECT value FROM json_each(:names))

-- name: name_prefix
instr(task.name, :name_prefix) = 1

-- name: queue
+task.lane IN (SELECT id FROM lane WHERE queue = :queue)

-- name: queues
+task.lane IN (SELECT id FROM lane WHERE queue IN (SELECT value FROM json_each(:queues)))

-- name: priority
+task.lane IN (SELECT id FROM lane WHERE priority = :priority)

-- name: tag
EXISTS (SELECT 1 FROM json_each(task.tags) WHERE value = :tag)

-- name: owner
task.owner = :owner

-- name: worker_id
task.worker_id = :worker_id

-- name: lock
task.lock_key = :lock

-- name: unique_key
task.unique_key = :unique_key

-- name: idempotency_key
task.idempotency_key = :idempotency_key

-- name: parent_id
task.parent_id = :parent_id

-- name: child_of
-- Of tasks that are found by their ids.
+task.parent_id = :child_of

-- name: error_type
task.error ->> 0 = :error_type

-- name: created_after
task.created_at >= :created_after

-- name: created_before
task.created_at < :created_before

-- name: finished_after
task.finished_at >= :finished_after

-- name: finished_before
task.finished_at < :finished_before

-- name: requires
+task.lane IN (
    SELECT lane.id FROM lane, json_each(lane.requires) AS required WHERE required.value = :requires
)

-- name: run_before
task.run_at < :run_before

-- name: columns
SELECT task.*
