-- name: named_records
SELECT kind, key, version, document, "group", sort, due_at
FROM holdfast.record WHERE kind = $1::text AND key = ANY ($2::text[]);

-- name: oldest_records_in_group
SELECT kind, key, version, document, "group", sort, due_at FROM holdfast.record
WHERE kind = $1::text AND "group" = $2::text
AND ($3::text IS NULL OR (sort, key) > ($3::text, $4::text))
ORDER BY sort, key LIMIT $5::bigint;

-- name: newest_records_in_group
SELECT kind, key, version, document, "group", sort, due_at FROM holdfast.record
WHERE kind = $1::text AND "group" = $2::text
AND ($3::text IS NULL OR (sort, key) < ($3::text, $4::text))
ORDER BY sort DESC, key DESC LIMIT $5::bigint;

-- name: oldest_records
SELECT kind, key, version, document, "group", sort, due_at FROM holdfast.record
WHERE kind = $1::text AND ($2::text IS NULL OR key > $2::text)
ORDER BY key LIMIT $3::bigint;

-- name: newest_records
SELECT kind, key, version, document, "group", sort, due_at FROM holdfast.record
WHERE kind = $1::text AND ($2::text IS NULL OR key < $2::text)
ORDER BY key DESC LIMIT $3::bigint;

-- name: hold_records
SELECT r.kind, r.key, r.version, r.written_by
FROM holdfast.record AS r
JOIN unnest($1::text[], $2::text[]) AS g (kind, key) ON r.kind = g.kind AND r.key = g.key
ORDER BY r.kind, r.key FOR UPDATE OF r;

-- name: known_tasks
SELECT id::text FROM holdfast.task WHERE id = ANY ($1::text[]::uuid[]);

-- name: held
-- And whether they were asked to stop.
SELECT r.id::text, coalesce(e.cancel_requested, false)
FROM unnest($1::text[]::uuid[], $2::integer[], $3::text[]) AS g (id, attempt, worker)
JOIN holdfast.worker AS w ON w.id = g.worker
JOIN holdfast.run AS r ON r.id = g.id AND r.attempt = g.attempt AND r.worker = w.number
LEFT JOIN holdfast.extra AS e ON e.id = r.id
ORDER BY r.id FOR UPDATE OF r;

-- name: update_records
-- They are locked.
UPDATE holdfast.record AS r SET
    version = r.version + 1, document = g.document, "group" = g."group", sort = g.sort,
    due_at = coalesce(g.due_at, holdfast.now_us($9::bigint) + g.due_in), written_by = g.by
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
    $8::text[]
) AS g (kind, key, document, "group", sort, due_at, due_in, by)
WHERE r.kind = g.kind AND r.key = g.key;

-- name: insert_records
INSERT INTO holdfast.record (kind, key, version, document, "group", sort, due_at, written_by)
SELECT
    g.kind, g.key, 1, g.document, g."group", g.sort,
    coalesce(g.due_at, holdfast.now_us($9::bigint) + g.due_in), g.by
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
    $8::text[]
) AS g (kind, key, document, "group", sort, due_at, due_in, by);

-- name: delete_records
DELETE FROM holdfast.record AS r USING unnest($1::text[], $2::text[]) AS g (kind, key)
WHERE r.kind = g.kind AND r.key = g.key;

-- name: take_due_records
WITH due AS MATERIALIZED (
    SELECT r.kind, r.key, r.due_at FROM holdfast.record AS r
    WHERE r.kind = $1::text AND r.due_at <= holdfast.now_us($4::bigint)
    ORDER BY r.due_at, r.key LIMIT $2::bigint FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE holdfast.record AS r SET
        version = r.version + 1, due_at = holdfast.now_us($4::bigint) + $3::bigint, written_by = ''
    FROM due WHERE r.kind = due.kind AND r.key = due.key
    RETURNING due.due_at AS was_due, r.*
)
SELECT kind, key, version, document, "group", sort, due_at FROM taken ORDER BY was_due, key;

-- name: next_due_record
SELECT min(r.due_at) - holdfast.now_us($2::bigint) FROM holdfast.record AS r
WHERE r.kind = $1::text AND r.due_at IS NOT NULL;

-- name: journal
SELECT step, result FROM holdfast.journal WHERE id = $1::text::uuid ORDER BY number;

-- name: report_steps
-- Reports of nothing but steps: by far the most. Answers the stale ones. Whoever would end an
-- attempt waits for the lock, which is taken in the order of ids, as everywhere. What is the same
-- in all rows (attempts, workers) comes once.
WITH told AS MATERIALIZED (
    SELECT g.id, coalesce(g.attempt, $2[1]) AS attempt, coalesce(g.worker, $3[1]) AS worker,
        g.step, g.result, g.n
    FROM unnest($1::text[]::uuid[], $2::integer[], $3::text[], $4::text[], $5::bytea[])
    WITH ORDINALITY AS g (id, attempt, worker, step, result, n)
), held AS MATERIALIZED (
    SELECT r.id, t.n FROM told AS t
    JOIN holdfast.run AS r ON r.id = t.id AND r.attempt = t.attempt
    JOIN holdfast.worker AS w ON w.number = r.worker AND w.id = t.worker
    ORDER BY r.id FOR SHARE OF r
), recorded AS (
    INSERT INTO holdfast.journal (id, step, result)
    SELECT t.id, t.step, t.result FROM told AS t JOIN held AS h ON h.n = t.n ORDER BY t.n
    ON CONFLICT DO NOTHING
)
SELECT t.n FROM told AS t WHERE NOT EXISTS (SELECT FROM held AS h WHERE h.n = t.n);

-- name: record_steps
INSERT INTO holdfast.journal (id, step, result)
SELECT g.id, g.step, g.result
FROM unnest($1::text[]::uuid[], $2::text[], $3::bytea[]) WITH ORDINALITY AS g (id, step, result, n)
ORDER BY g.n
ON CONFLICT DO NOTHING;
