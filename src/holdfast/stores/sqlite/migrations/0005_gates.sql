-- Gates: what keeps an eligible task from being ready (see `core/gate.py`). The lock is one of them.

-- All gates of the task in the order of passing: JSON; NULL for none, and for a lock alone.
ALTER TABLE task ADD COLUMN gates TEXT;
-- Blocked: how many of them it has behind it.
ALTER TABLE task ADD COLUMN passed INTEGER NOT NULL DEFAULT 0;
-- The latches that its end counts down: JSON array.
ALTER TABLE task ADD COLUMN counts TEXT;
-- 1: somebody stood behind its end. Ends of other tasks need not look for a latch.
ALTER TABLE task ADD COLUMN awaited INTEGER;

-- From now on the name of the gate that a blocked task stands before. `holds` is still its lock_key,
-- from the moment it has passed the lock.
UPDATE task SET waits_for = 'lock:' || waits_for WHERE waits_for IS NOT NULL;

-- What is known of gates other than locks, whose holders are in `task`. See `core/passing.py`.
CREATE TABLE gate (
    name TEXT NOT NULL PRIMARY KEY,
    capacity INTEGER NOT NULL,
    period INTEGER NOT NULL,
    pinned INTEGER,
    held INTEGER NOT NULL,
    starts TEXT, -- JSON, NULL for none
    "left" INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    opened_at INTEGER,
    look_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX gate_look ON gate (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX gate_opened ON gate (opened_at) WHERE opened_at IS NOT NULL;

-- Stays the last line.
PRAGMA user_version = 5;
