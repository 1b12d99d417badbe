-- name: use_wal
PRAGMA journal_mode = WAL;

-- name: settings
-- FULL: a commit is on disk when it returns, also if the power fails (P1).
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -64000;
PRAGMA mmap_size = 268435456;
PRAGMA temp_store = MEMORY;

-- name: read_only
PRAGMA query_only = ON;

-- name: version
PRAGMA user_version;

-- name: table_names
SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name;

-- name: begin_alone
BEGIN EXCLUSIVE;

-- name: begin_write
BEGIN IMMEDIATE;

-- name: begin_read
BEGIN;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;
