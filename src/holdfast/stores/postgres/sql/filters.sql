-- Parts of a query that `filters.py` puts together. All of them are fixed text; values are bound.

-- name: pin
-- For this transaction: the order of the newest comes from an index, never from a sort of everything;
-- and names mean PostgreSQL's own, also behind a pooler.
SELECT
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true), set_config('search_path', 'pg_catalog, pg_temp', true);

-- name: ids_of
SELECT t.id::text

-- name: pictures_of
SELECT * FROM holdfast.pictures(ARRAY(SELECT t.id::text

-- name: pictures_newest_first
)) ORDER BY id DESC

-- name: pictures_oldest_first
)) ORDER BY id

-- name: pictures_last_ended
)) ORDER BY finished_at DESC, id DESC

-- name: pictures_first_ended
)) ORDER BY finished_at, id

-- name: last_ended
ORDER BY d.finished_at DESC, d.id DESC LIMIT :limit::bigint

-- name: first_ended
ORDER BY d.finished_at, d.id LIMIT :limit::bigint

-- name: from_tasks
FROM holdfast.task AS t

-- name: from_done
FROM holdfast.done AS d JOIN holdfast.task AS t ON t.id = d.id

-- name: from_ends
-- The same where nothing is asked of the tasks themselves.
FROM holdfast.done AS d CROSS JOIN LATERAL (SELECT d.id) AS t

-- name: from_places
-- When there are few tasks in the places asked for, they are found there and not among all.
FROM (

-- name: ready
SELECT r.id, r.lane FROM holdfast.ready AS r

-- name: waiting
SELECT w.id, w.lane FROM holdfast.waiting AS w WHERE NOT w.retrying

-- name: retrying
SELECT w.id, w.lane FROM holdfast.waiting AS w WHERE w.retrying

-- name: blocked
SELECT b.id, b.lane FROM holdfast.blocked AS b

-- name: running
SELECT r.id, r.lane FROM holdfast.run AS r

-- name: or_there
UNION ALL

-- name: places_end
) AS there JOIN holdfast.task AS t ON t.id = there.id

-- name: places_by_id_end
) AS t

-- name: after_nearby
FROM (
    SELECT * FROM holdfast.task AS n WHERE n.id < :edge::text::uuid ORDER BY n.id DESC LIMIT 1000
) AS t

-- name: later_than_nearby
FROM (
    SELECT * FROM holdfast.task AS n WHERE n.id > :edge::text::uuid ORDER BY n.id LIMIT 1000
) AS t

-- name: how_many
SELECT coalesce(sum(n), 0)::bigint FROM holdfast.tally WHERE kind = ANY ($1::text[]);

-- name: newest_first
ORDER BY t.id DESC LIMIT :limit::bigint

-- name: newest_done_first
ORDER BY d.id DESC LIMIT :limit::bigint

-- name: oldest_done_first
ORDER BY d.id LIMIT :limit::bigint

-- name: oldest_first
ORDER BY t.id LIMIT :limit::bigint

-- name: count_of
SELECT count(*) FROM (SELECT 1

-- name: up_to_limit
LIMIT :limit::bigint) AS counted

-- name: after
t.id < :after::text::uuid

-- name: done_after
-- By the column that is walked: the planner does not see that `t.id` is the same.
d.id < :done_after::text::uuid

-- name: ended_after
(d.finished_at, d.id) < (:ended_after::bigint, :edge::text::uuid)

-- name: ended_later_than
(d.finished_at, d.id) > (:ended_later_than::bigint, :edge::text::uuid)

-- name: ended_since
d.finished_at >= :ended_since::bigint

-- name: ended_until
d.finished_at <= :ended_until::bigint

-- name: edge
d.id <> :edge::text::uuid

-- name: done_later_than
d.id > :done_later_than::text::uuid

-- name: later_than
t.id > :later_than::text::uuid

-- name: ids
t.id = ANY (:ids::text[]::uuid[])

-- name: states
holdfast.state_of(t.id) = ANY (:states::text[])

-- name: done_completed
d.state = 'completed'

-- name: done_failed
d.state = 'failed'

-- name: done_cancelled
d.state = 'cancelled'

-- name: done_dead_letter
-- Written out, and no value: only then does the planner know that the index of dead ends will do.
d.state = 'dead_letter'

-- name: or_ended
OR

-- name: name
t.name = :name::text

-- name: names
t.name = ANY (:names::text[])

-- name: name_prefix
starts_with(t.name, :name_prefix::text)

-- name: queue
t.lane = ANY (ARRAY(SELECT lane.id FROM holdfast.lane WHERE lane.queue = :queue::text))

-- name: queues
t.lane = ANY (ARRAY(SELECT lane.id FROM holdfast.lane WHERE lane.queue = ANY (:queues::text[])))

-- name: priority
t.lane = ANY (ARRAY(SELECT lane.id FROM holdfast.lane WHERE lane.priority = :priority::text))

-- name: tag
:tag::text = ANY (t.tags)

-- name: owner
t.owner = :owner::text

-- name: worker_id
coalesce(
    (SELECT x.worker FROM holdfast.run AS x WHERE x.id = t.id),
    (SELECT x.worker FROM holdfast.done AS x WHERE x.id = t.id),
    (SELECT x.worker FROM holdfast.extra AS x WHERE x.id = t.id)
) = (SELECT w.number FROM holdfast.worker AS w WHERE w.id = :worker_id::text)

-- name: lock
t.lock_key = :lock::text

-- name: unique_key
t.unique_key = :unique_key::text

-- name: idempotency_key
t.idempotency_key = :idempotency_key::text

-- name: parent_id
t.parent_id = :parent_id::text

-- name: error_type
coalesce(
    (SELECT x.error FROM holdfast.done AS x WHERE x.id = t.id),
    (
        SELECT x.error FROM holdfast.extra AS x
        WHERE x.id = t.id AND NOT EXISTS (SELECT 1 FROM holdfast.done AS o WHERE o.id = t.id)
    )
)::json ->> 0 = :error_type::text

-- name: created_after
t.created_at >= :created_after::bigint

-- name: created_before
t.created_at < :created_before::bigint

-- name: finished_after
(SELECT x.finished_at FROM holdfast.done AS x WHERE x.id = t.id) >= :finished_after::bigint

-- name: finished_before
(SELECT x.finished_at FROM holdfast.done AS x WHERE x.id = t.id) < :finished_before::bigint

-- name: requires
t.lane = ANY (ARRAY(SELECT lane.id FROM holdfast.lane WHERE :requires::text = ANY (lane.requires)))

-- name: run_before
coalesce((SELECT x.run_at FROM holdfast.extra AS x WHERE x.id = t.id), t.run_at) < :run_before::bigint

-- name: not_asked
NOT EXISTS (SELECT 1 FROM holdfast.extra AS x WHERE x.id = t.id AND x.cancel_requested)

-- name: key_is_free
NOT EXISTS (
    SELECT 1 FROM holdfast.unique_key AS u
    WHERE u.name = t.name AND u.key = t.unique_key AND u.id <> t.id
)

-- name: waits_or_ended
(
    EXISTS (SELECT 1 FROM holdfast.waiting AS x WHERE x.id = t.id)
    OR EXISTS (SELECT 1 FROM holdfast.done AS x WHERE x.id = t.id)
)
