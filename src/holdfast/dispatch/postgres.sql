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

-- name: call
SELECT pg_notify($1, $2);
