-- name: version
-- 0 without the schema; -1 for a schema of that name that is not ours.
SELECT CASE
    WHEN to_regclass('holdfast.migration') IS NOT NULL THEN 1
    WHEN EXISTS (
        SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'holdfast'
    ) THEN -1
    ELSE 0
END;

-- name: migrations_applied
SELECT coalesce(max(version), 0) FROM holdfast.migration;

-- name: hold
-- One migration at a time, in the whole database.
SELECT pg_advisory_xact_lock(hashtext('holdfast'), 1);

-- name: search_path
-- For this transaction. Behind a pooler a connection cannot be opened with it.
SET LOCAL search_path = pg_catalog, pg_temp;

-- name: types
SELECT
    NULL::uuid[], NULL::bytea[], NULL::integer[], NULL::bigint[], NULL::double precision[],
    NULL::text[];

-- name: create
CREATE SCHEMA IF NOT EXISTS holdfast;

-- name: applied
INSERT INTO holdfast.migration (version) VALUES ($1::integer);

-- name: server_version
SELECT current_setting('server_version_num')::integer;
