-- Callbacks are told by tasks of their own. What is owed to tasks of before waits in records for the
-- next server, which makes those tasks (`core/callback.py`). The flag 16 says nothing any more.
INSERT INTO holdfast.record (kind, key, version, document, "group", sort, written_by)
SELECT
    'owed_callback', t.id::text, 1,
    json_build_object('url', t.callback, 'owner', t.owner, 'trace', t.trace)::text, '', '', ''
FROM holdfast.task AS t
WHERE t.callback IS NOT NULL AND (
    EXISTS (SELECT 1 FROM holdfast.callback AS c WHERE c.id = t.id)
    OR NOT EXISTS (SELECT 1 FROM holdfast.done AS d WHERE d.id = t.id)
);

DROP TABLE holdfast.callback;
DROP FUNCTION IF EXISTS holdfast.owe_callbacks(uuid[], bigint);
DROP FUNCTION IF EXISTS holdfast.due_callbacks(integer, bigint, bigint);
DROP FUNCTION IF EXISTS holdfast.callback_done(text, integer, bigint, bigint, text, bigint);
