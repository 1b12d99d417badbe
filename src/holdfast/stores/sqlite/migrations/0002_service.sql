-- What the service needs: tokens, callbacks, workers of other kinds, and asking a worker to drain.

-- Only digests are kept: who reads this file cannot use what is in it.
CREATE TABLE token (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL, -- JSON array
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- The URL that is told of the task's end. A plain success reads it where it is written anyway.
ALTER TABLE task ADD COLUMN callback TEXT;

-- Notices of ended tasks that were not delivered yet.
CREATE TABLE callback (
    task INTEGER PRIMARY KEY,
    ended_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    tries INTEGER NOT NULL -- deliveries begun
) STRICT;

CREATE INDEX callback_due ON callback (due_at);

ALTER TABLE worker ADD COLUMN kind TEXT NOT NULL DEFAULT 'python';
ALTER TABLE worker ADD COLUMN drain_requested INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 2;
