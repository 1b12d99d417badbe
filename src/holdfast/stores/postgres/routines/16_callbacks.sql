-- Notices of ended tasks, owed to the URL that their submitter gave.

-- These tasks have just ended.
CREATE OR REPLACE FUNCTION holdfast.owe_callbacks(ids uuid[], at bigint) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.callback (id, ended_at, due_at)
    SELECT t.id, owe_callbacks.at, owe_callbacks.at FROM holdfast.task AS t
    WHERE t.id = ANY (ids) AND t.callback IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET ended_at = excluded.ended_at, due_at = excluded.due_at, tries = 0
$$;

-- Take notices that are due, for so many microseconds.
CREATE OR REPLACE FUNCTION holdfast.due_callbacks(max integer, lease bigint, now bigint DEFAULT NULL)
RETURNS TABLE (id text, url text, tries integer, ended_at bigint)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(due_callbacks.now);
BEGIN
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT c.id, c.due_at FROM holdfast.callback AS c WHERE c.due_at <= at
        ORDER BY c.due_at, c.id LIMIT greatest(max, 0) FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE holdfast.callback AS c SET due_at = at + lease, tries = c.tries + 1
        FROM due WHERE c.id = due.id
        RETURNING c.id, c.tries, c.ended_at, due.due_at AS was_due
    )
    SELECT task.id::text, task.callback, taken.tries, taken.ended_at
    FROM taken JOIN holdfast.task ON task.id = taken.id
    ORDER BY taken.was_due, taken.id;
END $$;

-- How a delivery went; false if the notice is no longer the caller's.
CREATE OR REPLACE FUNCTION holdfast.callback_done(
    task text, tries integer, ended_at bigint, retry_in bigint, error text, now bigint DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    at bigint := holdfast.now_us(callback_done.now);
BEGIN
    IF retry_in IS NOT NULL THEN
        UPDATE holdfast.callback AS c SET due_at = at + retry_in
        WHERE c.id = task::uuid AND c.tries = callback_done.tries
        AND c.ended_at = callback_done.ended_at;
        RETURN FOUND;
    END IF;
    DELETE FROM holdfast.callback AS c
    WHERE c.id = task::uuid AND c.tries = callback_done.tries
    AND c.ended_at = callback_done.ended_at;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO holdfast.event (id, at, kind, detail) VALUES (
        task::uuid, at, CASE WHEN error IS NULL THEN 'callback_delivered' ELSE 'callback_failed' END,
        error
    );
    RETURN true;
END $$;
