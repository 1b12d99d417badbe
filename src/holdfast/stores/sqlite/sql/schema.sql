-- name: use_wal
PRAGMA journal_mode = WAL;

-- name: settings
-- FULL: a commit is on disk when it returns, also if the power fails (P1).
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
-- 16 MB. Four times that, or mapping the file into memory, was no faster with 200,000 tasks and
-- doubled what a worker occupies; and a failing disk kills a process that has the file mapped.
PRAGMA cache_size = -16000;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;

-- name: no_waiting
-- For the writer, who waits by himself: see `patiently`.
PRAGMA busy_timeout = 0;

-- name: read_only
PRAGMA query_only = ON;
PRAGMA cache_size = -4000;

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
