-- Callbacks are told by tasks of their own. What is owed to tasks of before waits in records for the
-- next server, which makes those tasks (`core/callback.py`).
INSERT INTO record (kind, key, version, document, "group", sort, written_by)
SELECT
    'owed_callback', id, 1, json_object('url', callback, 'owner', owner, 'trace', trace), '', '', ''
FROM task
WHERE callback IS NOT NULL AND (place <> 4 OR seq IN (SELECT task FROM callback));

DROP TABLE callback;

-- Stays the last line.
PRAGMA user_version = 6;
