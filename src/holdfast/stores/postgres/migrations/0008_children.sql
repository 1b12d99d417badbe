-- Children are found by their parent, in the order of their ids. Tasks without one are not in it.
-- Partitions that are made later get theirs by themselves.
CREATE INDEX task_parent ON holdfast.task (parent_id, id) WHERE parent_id IS NOT NULL;
