-- name: named
SELECT kind, key, version, document, "group", sort, due_at FROM record
WHERE kind = ? AND key IN (SELECT value FROM json_each(?));

-- name: oldest_in_group
SELECT kind, key, version, document, "group", sort, due_at FROM record
WHERE kind = :kind AND "group" = :group AND (NOT :is_later OR (sort, key) > (:sort, :key))
ORDER BY sort, key LIMIT :limit;

-- name: newest_in_group
SELECT kind, key, version, document, "group", sort, due_at FROM record
WHERE kind = :kind AND "group" = :group AND (NOT :is_later OR (sort, key) < (:sort, :key))
ORDER BY sort DESC, key DESC LIMIT :limit;

-- name: oldest_by_key
SELECT kind, key, version, document, "group", sort, due_at FROM record
WHERE kind = :kind AND (NOT :is_later OR key > :key)
ORDER BY key LIMIT :limit;

-- name: newest_by_key
SELECT kind, key, version, document, "group", sort, due_at FROM record
WHERE kind = :kind AND (NOT :is_later OR key < :key)
ORDER BY key DESC LIMIT :limit;

-- name: kept
SELECT kind, key, version, written_by FROM record
WHERE (kind, key) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?));

-- name: put
-- Whether it may be written was decided under the same write lock.
INSERT INTO record (kind, key, version, document, "group", sort, due_at, written_by)
VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (kind, key) DO UPDATE SET
    version = version + 1, document = ?3, "group" = ?4, sort = ?5, due_at = ?6, written_by = ?7;

-- name: delete
DELETE FROM record WHERE kind = ? AND key = ?;

-- name: first_due
SELECT min(due_at) FROM record WHERE kind = ? AND due_at IS NOT NULL;

-- name: due
SELECT kind, key, version, document, "group", sort, due_at FROM record
WHERE kind = :kind AND due_at <= :now
ORDER BY due_at, key LIMIT :limit;

-- name: take
UPDATE record SET version = version + 1, due_at = :until, written_by = ''
WHERE (kind, key) IN (
    SELECT kind, key FROM record WHERE kind = :kind AND due_at <= :now
    ORDER BY due_at, key LIMIT :limit
);

-- name: journal
SELECT step, result FROM journal
WHERE task = (SELECT seq FROM task WHERE id = ?) ORDER BY seq;

-- name: record_steps
INSERT INTO journal (task, step, result)
SELECT column1, column2, column3 FROM (VALUES /* rows */) WHERE column1 IS NOT NULL
ON CONFLICT (task, step) DO NOTHING;

-- name: forget_steps
DELETE FROM journal WHERE task IN (SELECT value FROM json_each(?));
