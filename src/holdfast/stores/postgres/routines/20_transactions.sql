-- Tasks in somebody's own transaction.
--
--     add_within(tasks json, idempotency_window double precision DEFAULT 86400,
--         now bigint DEFAULT NULL) -> TABLE (position integer, task_id text, outcome text, state text)
--         `add` for a caller who has a transaction to lose: an idempotency conflict is no error but
--         the only row of the answer, with outcome `conflict`, the id of the task that has the key,
--         and the key as its state; nothing of the batch is kept. Sleeping workers are woken when
--         the transaction commits.
--     holds_lease(task text, attempt integer, worker text) -> boolean
--     complete_within(task text, attempt integer, worker text, charged integer,
--         crash_count integer, result bytea, progress text, units double precision,
--         tokens_in bigint, tokens_out bigint, logs text, now bigint DEFAULT NULL) -> text
--         What an attempt said last, and that it succeeded, as the last act of its handler's
--         transaction. Raises HF003 if the attempt is no longer the worker's; the HINT is who has
--         the task now. Without a COMMIT within 5 s the server ends the session: a worker that falls
--         silent just here would otherwise keep everybody from rescuing its task. Answers whom
--         gates have let pass.
--     was_completed(task text, attempt integer, worker text) -> boolean
--         For whoever lost the answer to that COMMIT. Waits until it has happened or cannot happen.

CREATE OR REPLACE FUNCTION holdfast.add_within(
    tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL
) RETURNS TABLE ("position" integer, task_id text, outcome text, state text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    key text;
    first text;
BEGIN
    RETURN QUERY
    SELECT * FROM holdfast.add(add_within.tasks, add_within.idempotency_window, add_within.now);
    PERFORM holdfast.wake(ARRAY(
        SELECT DISTINCT coalesce(given.queue, 'default')
        FROM json_to_recordset(add_within.tasks) AS given (queue text)
    ));
EXCEPTION WHEN SQLSTATE 'HF002' THEN
    GET STACKED DIAGNOSTICS key = PG_EXCEPTION_DETAIL, first = PG_EXCEPTION_HINT;
    RETURN QUERY SELECT 0, first, 'conflict', key;
END $$;

CREATE OR REPLACE FUNCTION holdfast.holds_lease(task text, attempt integer, worker text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT 1 FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
        WHERE r.id = holds_lease.task::uuid AND r.attempt = holds_lease.attempt
        AND w.id = holds_lease.worker
    )
$$;

CREATE OR REPLACE FUNCTION holdfast.complete_within(
    task text, attempt integer, worker text, charged integer, crash_count integer, result bytea,
    progress text, units double precision, tokens_in bigint, tokens_out bigint, logs text,
    now bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', '5s', true);
    PERFORM 1
    FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
    WHERE r.id = task::uuid AND r.attempt = complete_within.attempt
    AND w.id = complete_within.worker
    FOR UPDATE OF r;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'attempt % of task % is no longer the worker''s', attempt, task
        USING ERRCODE = 'HF003', HINT = coalesce(holdfast.holder_of(task::uuid), '');
    END IF;
    IF progress IS NOT NULL OR units IS NOT NULL OR logs IS NOT NULL THEN
        PERFORM holdfast.report(
            ARRAY[task], ARRAY[attempt], ARRAY[worker], ARRAY[progress], ARRAY[units],
            ARRAY[tokens_in], ARRAY[tokens_out], ARRAY[logs], now
        );
    END IF;
    PERFORM holdfast.save(
        NULL, NULL, NULL, NULL,
        ARRAY[task], ARRAY[attempt], ARRAY[worker], ARRAY['completed'], ARRAY['completed'],
        ARRAY[charged], ARRAY[crash_count], ARRAY[result], ARRAY[NULL::text], ARRAY[0::bigint],
        ARRAY[NULL::text], ARRAY[NULL::text], now
    );
    RETURN holdfast.passed_on();
END $$;

CREATE OR REPLACE FUNCTION holdfast.was_completed(task text, attempt integer, worker text) RETURNS boolean
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    -- Whoever has ended the attempt and not committed yet has its row locked.
    PERFORM 1 FROM holdfast.run AS r
    WHERE r.id = task::uuid AND r.attempt = was_completed.attempt FOR UPDATE;
    RETURN holdfast.was_saved(task::uuid, attempt, worker, 'completed');
END $$;
