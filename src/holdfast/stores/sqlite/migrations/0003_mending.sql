-- What the first users, operators and attackers found.

-- What a token is bound to, who made it, when it was last used: JSON (see `core/token.py`).
ALTER TABLE token ADD COLUMN document TEXT NOT NULL DEFAULT '{}';

-- The task whose body keeps the worker's event loop; empty: none.
ALTER TABLE worker ADD COLUMN blocked_by TEXT NOT NULL DEFAULT '';

-- For people: SELECT * FROM tasks WHERE state = 'dead_letter'. The columns are those of the view of
-- the same name in PostgreSQL; instants are text in UTC, `requires` and `tags` JSON. 2147483647
-- retries are without limit. A key is shown without what keeps those of different owners apart (see
-- `core/keys.py`).
CREATE VIEW tasks AS
SELECT
    task.id, task.name, lane.queue, lane.priority, task.state, task.attempt, task.charged,
    nullif(task.max_retries, 2147483647) AS max_retries, task.crash_count,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.created_at / 1e6, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.run_at / 1e6, 'unixepoch') AS run_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.started_at / 1e6, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.finished_at / 1e6, 'unixepoch') AS finished_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.expires_at / 1e6, 'unixepoch') AS expires_at,
    task.worker_id, task.reason, task.error ->> 0 AS error_type, task.error ->> 1 AS error_message,
    CAST(task.payload AS TEXT) AS payload, CAST(task.result AS TEXT) AS result,
    CASE WHEN task.unique_key >= char(31) AND task.unique_key < char(32) THEN substr(task.unique_key, 34)
    ELSE task.unique_key END AS unique_key,
    CASE WHEN task.idempotency_key >= char(31) AND task.idempotency_key < char(32) THEN substr(task.idempotency_key, 34)
    ELSE task.idempotency_key END AS idempotency_key,
    task.lock_key AS lock, task.fence, lane.requires, task.tags, task.owner,
    task.trace, task.parent_id, coalesce(task.cancel_requested, 0) AS cancel_requested, task.rank,
    task.callback, CAST(task.timeout AS REAL) AS timeout, task.error ->> 2 AS traceback,
    CASE lane.priority WHEN 'critical' THEN 9 WHEN 'high' THEN 7 WHEN 'normal' THEN 4 ELSE 1 END
    AS priority_number,
    coalesce(substr(task.trace, 4, 32), replace(task.id, '-', '')) AS trace_id
FROM task JOIN lane ON lane.id = task.lane;

-- Stays the last line.
PRAGMA user_version = 3;
