-- The one-row picture of a task.

-- As the store reads it. Every part is looked up by the key it is found under, whatever the planner
-- thinks of the sizes of tables.
CREATE OR REPLACE VIEW holdfast.picture AS
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
    coalesce(extra.cancel_requested, false) AS cancel_requested,
    task.callback, task.gates, task.counts, blocked.gate
FROM holdfast.task
LEFT JOIN LATERAL (SELECT * FROM holdfast.done AS d WHERE d.id = task.id LIMIT 1) AS done ON true
LEFT JOIN LATERAL (SELECT * FROM holdfast.run AS r WHERE r.id = task.id LIMIT 1) AS run ON true
LEFT JOIN LATERAL (SELECT * FROM holdfast.extra AS e WHERE e.id = task.id LIMIT 1) AS extra ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.waiting AS w WHERE w.id = task.id LIMIT 1
) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.blocked AS b
    WHERE b.gate = ANY (holdfast.passes_of(task.passes, task.lock_key))
    AND b.rank = coalesce(extra.rank, task.rank) AND b.id = task.id LIMIT 1
) AS blocked ON true
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.ready AS r
    WHERE r.lane = task.lane AND r.late IN (false, true)
    AND r.rank = coalesce(extra.rank, task.rank) AND r.id = task.id LIMIT 1
) AS ready ON true;
CREATE OR REPLACE FUNCTION holdfast.pictures(ids text[]) RETURNS SETOF holdfast.picture
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
--
-- The columns are those of the view of the same name in SQLite. New ones go to the end: a view that
-- is there can be replaced only so. 2147483647 retries are without limit. `priority_number` sorts,
-- and means the same priority wherever one is read.
--
-- One part for each place, so that a query that asks for states looks only where such tasks are, and
-- one that asks for an id finds it by its key. `t` is the task, `e` what only some tasks have.
CREATE OR REPLACE VIEW holdfast.tasks AS
SELECT
    p.id, (p.t).name, lane.queue, lane.priority, p.state, p.attempt,
    coalesce((p.e).charged, 0) AS charged, nullif((p.t).max_retries, 2147483647) AS max_retries,
    coalesce((p.e).crash_count, 0) AS crash_count,
    holdfast.as_time((p.t).created_at) AS created_at,
    holdfast.as_time(coalesce((p.e).run_at, (p.t).run_at)) AS run_at,
    holdfast.as_time(coalesce(p.started_at, (p.e).started_at)) AS started_at,
    holdfast.as_time(p.finished_at) AS finished_at,
    CASE WHEN NOT coalesce((p.e).has_no_expiry, false)
    THEN holdfast.as_time((p.t).expires_at) END AS expires_at,
    (
        SELECT worker.id FROM holdfast.worker
        WHERE worker.number = coalesce(p.worker, (p.e).worker)
    ) AS worker_id,
    p.reason, p.error::json ->> 0 AS error_type, p.error::json ->> 1 AS error_message,
    holdfast.as_text((p.t).payload) AS payload, holdfast.as_text(p.result) AS result,
    holdfast.shown_key((p.t).unique_key) AS unique_key,
    holdfast.shown_key((p.t).idempotency_key) AS idempotency_key, (p.t).lock_key AS lock,
    coalesce(p.fence, (p.e).fence) AS fence, lane.requires, (p.t).tags, (p.t).owner, (p.t).trace,
    (p.t).parent_id, coalesce((p.e).cancel_requested, false) AS cancel_requested,
    coalesce((p.e).rank, (p.t).rank) AS rank, (p.t).callback,
    (p.t).timeout, p.error::json ->> 2 AS traceback,
    CASE lane.priority WHEN 'critical' THEN 9 WHEN 'high' THEN 7 WHEN 'normal' THEN 4 ELSE 1 END
    AS priority_number,
    coalesce(substr((p.t).trace, 4, 32), replace(p.id::text, '-', '')) AS trace_id
FROM (
    SELECT
        t.id, t, e, d.state, d.attempt, d.started_at, d.finished_at, d.worker, d.fence, d.result,
        d.error, d.reason
    FROM holdfast.done AS d JOIN holdfast.task AS t ON t.id = d.id
    LEFT JOIN holdfast.extra AS e ON e.id = t.id
    UNION ALL
    SELECT
        t.id, t, e, 'running', r.attempt, r.started_at, NULL, r.worker, r.fence, e.result, e.error,
        e.reason
    FROM holdfast.run AS r JOIN holdfast.task AS t ON t.id = r.id
    LEFT JOIN holdfast.extra AS e ON e.id = t.id
    UNION ALL
    SELECT
        t.id, t, e, CASE WHEN w.retrying THEN 'retrying'::holdfast.state ELSE 'queued' END,
        w.attempt, NULL, NULL, NULL, NULL, e.result, e.error, e.reason
    FROM holdfast.waiting AS w JOIN holdfast.task AS t ON t.id = w.id
    LEFT JOIN holdfast.extra AS e ON e.id = t.id
    UNION ALL
    SELECT t.id, t, e, 'blocked', b.attempt, NULL, NULL, NULL, NULL, e.result, e.error, e.reason
    FROM holdfast.task AS t LEFT JOIN holdfast.extra AS e ON e.id = t.id
    JOIN holdfast.blocked AS b
    ON b.gate = ANY (holdfast.passes_of(t.passes, t.lock_key))
    AND b.rank = coalesce(e.rank, t.rank) AND b.id = t.id
    UNION ALL
    SELECT t.id, t, e, 'queued', r.attempt, NULL, NULL, NULL, NULL, e.result, e.error, e.reason
    FROM holdfast.task AS t LEFT JOIN holdfast.extra AS e ON e.id = t.id
    JOIN holdfast.ready AS r
    ON r.lane = t.lane AND r.late IN (false, true) AND r.rank = coalesce(e.rank, t.rank)
    AND r.id = t.id
) AS p (
    id, t, e, state, attempt, started_at, finished_at, worker, fence, result, error, reason
)
JOIN holdfast.lane ON lane.id = (p.t).lane;

-- Gates, for people, and the store's list of them. `parked` is counted up to `core.gate.PARKED_CAP`.
CREATE OR REPLACE VIEW holdfast.gates AS
SELECT
    g.name, coalesce(g.pinned, g.capacity) AS capacity, g.pinned IS NOT NULL AS pinned, g.held,
    (
        SELECT count(*)
        FROM (SELECT 1 FROM holdfast.blocked AS b WHERE b.gate = g.name LIMIT 1000) AS line
    ) AS parked,
    g.holder,
    CASE WHEN EXISTS (SELECT 1 FROM holdfast.blocked AS b WHERE b.gate = g.name)
    THEN holdfast.as_time(g.look_at) END AS opens_at,
    g.left, g.failed,
    g.opened_at IS NOT NULL AS is_open
FROM holdfast.gate AS g;

CREATE OR REPLACE VIEW holdfast.lock AS -- what workers of the last release ask for
SELECT substr(g.name, 6) AS key, g.holder, g.lane, g.rank
FROM holdfast.gate AS g WHERE starts_with(g.name, 'lock:');

-- Records of each kind, for people.
CREATE OR REPLACE VIEW holdfast.paused_queue AS -- also what callers of an older release read
SELECT r.key AS queue FROM holdfast.record AS r WHERE r.kind = 'pause';

CREATE OR REPLACE VIEW holdfast.tokens AS
SELECT
    r.key AS id, d.document ->> 'name' AS name, d.document -> 'scopes' AS scopes,
    d.document ->> 'owner' AS owner, d.document ->> 'created_by' AS created_by,
    (d.document ->> 'created_at')::timestamptz AS created_at,
    (d.document ->> 'expires_at')::timestamptz AS expires_at,
    (d.document ->> 'revoked_at')::timestamptz AS revoked_at,
    (d.document ->> 'last_used_at')::timestamptz AS last_used_at
FROM holdfast.record AS r CROSS JOIN LATERAL (SELECT r.document::jsonb AS document) AS d
WHERE r.kind = 'token';
