-- The one-row picture of a task.

-- As the store reads it. Every part is looked up by the key it is found under, whatever the planner
-- thinks of the sizes of tables.
CREATE VIEW holdfast.picture AS
SELECT
    task.id, task.name, task.lane, task.payload, task.created_at, task.max_retries, task.timeout,
    task.retry, task.unique_key, task.idempotency_key, task.lock_key, task.tags, task.owner,
    task.trace, task.parent_id,
    CASE
        WHEN done.id IS NOT NULL THEN done.state::text
        WHEN run.id IS NOT NULL THEN 'running'
        WHEN waiting.id IS NOT NULL THEN CASE WHEN waiting.retrying THEN 'retrying' ELSE 'queued' END
        WHEN blocked.id IS NOT NULL THEN 'blocked'
        ELSE 'queued'
    END AS state,
    CASE
        WHEN done.id IS NOT NULL THEN 'done'
        WHEN run.id IS NOT NULL THEN 'running'
        WHEN waiting.id IS NOT NULL THEN 'waiting'
        WHEN blocked.id IS NOT NULL THEN 'blocked'
        WHEN ready.id IS NOT NULL THEN 'ready'
    END AS place,
    coalesce(extra.rank, task.rank) AS rank,
    coalesce(extra.run_at, task.run_at) AS run_at,
    CASE WHEN NOT coalesce(extra.has_no_expiry, false) THEN task.expires_at END AS expires_at,
    coalesce(done.attempt, run.attempt, waiting.attempt, blocked.attempt, ready.attempt, 0)
    AS attempt,
    coalesce(extra.charged, 0) AS charged,
    coalesce(extra.crash_count, 0) AS crash_count,
    coalesce(extra.cause, 'submitted') AS cause,
    coalesce(done.started_at, run.started_at, extra.started_at) AS started_at,
    done.finished_at,
    (
        SELECT worker.id FROM holdfast.worker
        WHERE worker.number = coalesce(done.worker, run.worker, extra.worker)
    ) AS worker_id,
    CASE WHEN run.id IS NOT NULL THEN run.fence ELSE coalesce(done.fence, extra.fence) END AS fence,
    CASE WHEN done.id IS NOT NULL THEN done.result ELSE extra.result END AS result,
    CASE WHEN done.id IS NOT NULL THEN done.error ELSE extra.error END AS error,
    CASE WHEN done.id IS NOT NULL THEN done.reason ELSE extra.reason END AS reason,
    done.ended, coalesce(done.charged, false) AS ended_charged,
    extra.progress,
    coalesce(extra.cost_units, 0) AS cost_units,
    coalesce(extra.tokens_in, 0) AS tokens_in,
    coalesce(extra.tokens_out, 0) AS tokens_out,
    coalesce(extra.cancel_requested, false) AS cancel_requested
FROM holdfast.task
LEFT JOIN LATERAL (SELECT * FROM holdfast.done AS d WHERE d.id = task.id LIMIT 1) AS done ON true
LEFT JOIN LATERAL (SELECT * FROM holdfast.run AS r WHERE r.id = task.id LIMIT 1) AS run ON true
LEFT JOIN LATERAL (SELECT * FROM holdfast.extra AS e WHERE e.id = task.id LIMIT 1) AS extra ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.waiting AS w WHERE w.id = task.id LIMIT 1
) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.blocked AS b
    WHERE b.lock_key = task.lock_key AND b.rank = coalesce(extra.rank, task.rank)
    AND b.id = task.id LIMIT 1
) AS blocked ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.ready AS r
    WHERE r.lane = task.lane AND r.late IN (false, true)
    AND r.rank = coalesce(extra.rank, task.rank) AND r.id = task.id LIMIT 1
) AS ready ON true;

CREATE FUNCTION holdfast.pictures(ids text[]) RETURNS SETOF holdfast.picture
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY SELECT picture.* FROM holdfast.picture WHERE picture.id = ANY (ids::uuid[]);
END $$;

-- For people: SELECT * FROM holdfast.tasks WHERE state = 'dead_letter'
CREATE VIEW holdfast.tasks AS
SELECT
    p.id, p.name, lane.queue, lane.priority, p.state, p.attempt, p.charged, p.max_retries,
    p.crash_count, holdfast.as_time(p.created_at) AS created_at,
    holdfast.as_time(p.run_at) AS run_at, holdfast.as_time(p.started_at) AS started_at,
    holdfast.as_time(p.finished_at) AS finished_at, holdfast.as_time(p.expires_at) AS expires_at,
    p.worker_id, p.reason, p.error::json ->> 0 AS error_type, p.error::json ->> 1 AS error_message,
    holdfast.as_text(p.payload) AS payload, holdfast.as_text(p.result) AS result,
    p.unique_key, p.idempotency_key, p.lock_key AS lock, p.fence, lane.requires, p.tags, p.owner,
    p.trace, p.parent_id, p.cancel_requested, p.rank
FROM holdfast.picture AS p JOIN holdfast.lane ON lane.id = p.lane;
