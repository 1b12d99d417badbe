-- Locks per resource key, and how tasks stand in line.
--
-- Of all eligible tasks with one key the *holder* is ready or running, the rest are blocked. Whoever
-- changes anything about a key first calls `hold_locks`, which locks the key's row until commit,
-- keys in order; then moves tasks (a task that becomes eligible is simply blocked, a holder that
-- leaves sets `holder` to NULL); then calls `settle_locks`, which restores the one rule.
--
-- No deadlocks, because everybody locks rows in this order: run, idempotency, unique_key, lock,
-- then ready, waiting and blocked. Claims lock rows of `ready` too, but wait for nobody.

CREATE FUNCTION holdfast.hold_locks(keys text[]) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.lock (key)
    SELECT DISTINCT wanted FROM unnest(hold_locks.keys) AS wanted
    WHERE wanted IS NOT NULL ORDER BY wanted
    -- An update, not nothing: it locks the row, so that a waiter cannot come while the last one goes.
    ON CONFLICT (key) DO UPDATE SET key = excluded.key
$$;

-- Put a task in line. Rows are `late` if they come in below the floor of their lane.
CREATE FUNCTION holdfast.line_up(
    id uuid, rank bigint, lane integer, attempt integer, flags smallint, expires_at bigint
) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
    VALUES (
        line_up.id, line_up.rank, line_up.lane, line_up.attempt, line_up.flags,
        current_setting('transaction_isolation') <> 'read committed' OR coalesce(
            line_up.rank < (SELECT pending FROM holdfast.floor WHERE floor.lane = line_up.lane),
            false
        ),
        line_up.expires_at
    )
$$;

-- Give each of these keys to whom it belongs: if nobody holds it, or the holder has not started and
-- stands behind the first that is blocked, then to that one.
CREATE FUNCTION holdfast.settle_locks(keys text[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    wanted text;
    held holdfast.lock;
    first holdfast.blocked;
    back holdfast.ready;
BEGIN
    FOR wanted IN
        SELECT DISTINCT key FROM unnest(keys) AS key WHERE key IS NOT NULL ORDER BY key
    LOOP
        SELECT l.* INTO held FROM holdfast.lock AS l WHERE l.key = wanted;
        SELECT * INTO first FROM holdfast.blocked AS b WHERE b.lock_key = wanted
        ORDER BY b.rank, b.id LIMIT 1;
        IF first.id IS NULL THEN
            IF held.holder IS NULL THEN
                DELETE FROM holdfast.lock AS l WHERE l.key = wanted;
            END IF;
            CONTINUE;
        END IF;
        IF held.holder IS NOT NULL THEN
            CONTINUE WHEN (held.rank, held.holder) < (first.rank, first.id);
            DELETE FROM holdfast.ready AS r
            WHERE r.lane = held.lane AND r.late IN (false, true) AND r.rank = held.rank
            AND r.id = held.holder
            RETURNING * INTO back;
            CONTINUE WHEN NOT FOUND; -- it has started
            INSERT INTO holdfast.blocked (lock_key, rank, id, lane, attempt, flags, expires_at)
            VALUES (
                wanted, back.rank, back.id, back.lane, back.attempt, back.flags, back.expires_at
            );
            INSERT INTO holdfast.tally VALUES ('ready', back.lane, -1), ('blocked', back.lane, 1);
        END IF;
        DELETE FROM holdfast.blocked AS b
        WHERE b.lock_key = wanted AND b.rank = first.rank AND b.id = first.id;
        PERFORM holdfast.line_up(
            first.id, first.rank, first.lane, first.attempt, first.flags, first.expires_at
        );
        UPDATE holdfast.lock AS l SET holder = first.id, lane = first.lane, rank = first.rank
        WHERE l.key = wanted;
        INSERT INTO holdfast.tally VALUES ('blocked', first.lane, -1), ('ready', first.lane, 1);
    END LOOP;
END $$;

-- How a task shows: by the place it is in.
CREATE FUNCTION holdfast.state_of(id uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(
        (SELECT done.state::text FROM holdfast.done WHERE done.id = state_of.id),
        (SELECT 'running' FROM holdfast.run WHERE run.id = state_of.id),
        (
            SELECT CASE WHEN waiting.retrying THEN 'retrying' ELSE 'queued' END
            FROM holdfast.waiting WHERE waiting.id = state_of.id
        ),
        (
            SELECT 'blocked'
            FROM holdfast.task JOIN holdfast.lock ON lock.key = task.lock_key
            WHERE task.id = state_of.id AND lock.holder <> state_of.id
        ),
        'queued'
    )
$$;
