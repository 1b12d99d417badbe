-- Brings a PostgreSQL store to a size, much faster than its verbs could. $1 and $2 are the first and
-- the last number of a piece, $3 the milliseconds in its first id.

-- name: waiting
WITH made AS (
    SELECT
        (
            lpad(to_hex($3::bigint + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
            || '8' || lpad(to_hex(n), 15, '0')
        )::uuid AS id,
        $3::bigint * 1000 + n AS rank, n
    FROM generate_series($1::bigint, $2::bigint) AS n
), added AS (
    INSERT INTO holdfast.task (id, rank, created_at, run_at, lane, max_retries, timeout, name, payload)
    SELECT id, rank, rank, rank, $4, 3, 600, 'noop', convert_to('{"n":' || n || '}', 'UTF8') FROM made
), counted AS (
    INSERT INTO holdfast.tally (kind, key, n) VALUES ('ready', $4, $2 - $1 + 1)
)
INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late)
SELECT id, rank, $4, 0, 0, false FROM made;

-- name: finished
WITH made AS (
    SELECT
        (
            lpad(to_hex($3::bigint + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
            || '8' || lpad(to_hex(n), 15, '0')
        )::uuid AS id,
        $3::bigint * 1000 + n AS rank, n
    FROM generate_series($1::bigint, $2::bigint) AS n
), added AS (
    INSERT INTO holdfast.task (id, rank, created_at, run_at, lane, max_retries, timeout, name, payload)
    SELECT id, rank, rank, rank, $4, 3, 600, 'noop', convert_to('{"n":' || n || '}', 'UTF8') FROM made
), counted AS (
    INSERT INTO holdfast.tally (kind, key, n) VALUES ('completed', 0, $2 - $1 + 1)
)
INSERT INTO holdfast.done (id, finished_at, started_at, state, attempt, worker, flags, ended, result)
SELECT id, rank, rank, 'completed', 1, 1, 0, 'completed', '1' FROM made;
