-- What the dispatcher asks of PostgreSQL. The functions are explained where they are made, in the
-- store's migrations. `holdfast` stands for the schema.

-- name: sleep
SELECT holdfast.sleep($1, $2, $3);

-- name: awake
SELECT holdfast.awake($1);

-- name: wake
SELECT holdfast.wake($1);

-- name: backend
SELECT pg_backend_pid();

-- name: identity
-- When it was made, and what it is called there: no two schemas have that in common, and it is the
-- same whichever way they are reached.
SELECT concat_ws('/', extract(epoch FROM min(applied_at)), current_database(), $1::text)
FROM holdfast.migration;

-- name: call
SELECT pg_notify($1, $2);
