-- What the dispatcher asks of PostgreSQL. The functions are explained where they are made, in the
-- store's routines. `holdfast` stands for the schema.

-- name: sleep
SELECT holdfast.sleep($1, $2, $3);

-- name: awake
SELECT holdfast.awake($1);

-- name: wake
SELECT holdfast.wake($1);

-- name: backend
SELECT pg_catalog.pg_backend_pid();

-- name: identity
-- When it was made, and what it is called there: no two schemas have that in common, and it is the
-- same whichever way they are reached.
SELECT pg_catalog.concat_ws(
    '/', extract(epoch FROM pg_catalog.min(applied_at)), pg_catalog.current_database(),
    $1::pg_catalog.text
)
FROM holdfast.migration;

-- name: call
SELECT pg_catalog.pg_notify($1, $2);
