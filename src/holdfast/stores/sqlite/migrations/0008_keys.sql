-- Tasks are found by their keys, long after these may be used again, and by their owners. Tasks
-- without one are not in it.
CREATE INDEX task_by_unique_key ON task (unique_key, id) WHERE unique_key IS NOT NULL;
CREATE INDEX task_by_idempotency_key ON task (idempotency_key, id) WHERE idempotency_key IS NOT NULL;
CREATE INDEX task_by_owner ON task (owner, id) WHERE owner IS NOT NULL;

-- Stays the last line.
PRAGMA user_version = 8;
