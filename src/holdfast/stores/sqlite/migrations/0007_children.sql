-- Children are found by their parent, in the order of their ids. Tasks without one are not in it.
CREATE INDEX task_parent ON task (parent_id, id) WHERE parent_id IS NOT NULL;

-- Stays the last line.
PRAGMA user_version = 7;
