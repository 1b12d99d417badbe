-- Tasks are found by their keys, long after these may be used again, and by their owners. Tasks
-- without one are not in it.
CREATE INDEX task_unique_key ON holdfast.task (unique_key, id) WHERE unique_key IS NOT NULL;
CREATE INDEX task_idempotency_key ON holdfast.task (idempotency_key, id) WHERE idempotency_key IS NOT NULL;
CREATE INDEX task_owner ON holdfast.task (owner, id) WHERE owner IS NOT NULL;
