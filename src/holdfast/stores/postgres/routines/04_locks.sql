-- Locks per resource key, and how tasks stand in line.
--
-- Of all eligible tasks with one key the *holder* is ready or running, the rest are blocked. Whoever
-- changes anything about a key first calls `hold_locks`, which locks the key's row until commit,
-- keys in order; then moves tasks (a task that becomes eligible is simply blocked, a holder that
-- leaves sets `holder` to NULL); then calls `settle_locks`, which restores the one rule.
--
-- No deadlocks, because everybody locks rows in this order: run, idempotency, unique_key, lock,
-- then ready, waiting and blocked. Claims lock rows of `ready` too, but wait for nobody.

CREATE OR REPLACE FUNCTION holdfast.hold_locks(keys text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.lock AS l (key)
    SELECT DISTINCT wanted FROM unnest(keys) AS wanted WHERE wanted IS NOT NULL ORDER BY wanted
    -- An update, not nothing: it locks the row, so that a waiter cannot come while the last one goes.
    ON CONFLICT (key) DO UPDATE SET holder = l.holder;
END $$;

-- Put a task in line. Rows are `late` if they come in below the floor of their lane.
CREATE OR REPLACE FUNCTION holdfast.line_up(
    wanted uuid, rank bigint, lane integer, attempt integer, flags smallint, expires_at bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
    VALUES (
        wanted, line_up.rank, line_up.lane, line_up.attempt, line_up.flags,
        current_setting('transaction_isolation') <> 'read committed' OR coalesce(
            line_up.rank < (SELECT f.pending FROM holdfast.floor AS f WHERE f.lane = line_up.lane),
            false
        ),
        line_up.expires_at
    );
END $$;

-- Give each of these keys to whom it belongs: if nobody holds it, or the holder has not started and
-- stands behind the first that is blocked, then to that one. The first case is the usual one, when
-- tasks come and when they end, and is done for all keys at once.
CREATE OR REPLACE FUNCTION holdfast.settle_locks(keys text[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    all_late boolean := current_setting('transaction_isolation') <> 'read committed';
    held holdfast.lock;
BEGIN
    WITH free AS (
        SELECT l.key, first.*
        FROM (SELECT DISTINCT wanted FROM unnest(keys) AS wanted) AS k
        JOIN holdfast.lock AS l ON l.key = k.wanted AND l.holder IS NULL
        LEFT JOIN LATERAL (
            SELECT b.id, b.rank, b.lane, b.attempt, b.flags, b.expires_at
            FROM holdfast.blocked AS b WHERE b.lock_key = l.key ORDER BY b.rank, b.id LIMIT 1
        ) AS first ON true
    ), left_behind AS (
        DELETE FROM holdfast.lock AS l USING free WHERE l.key = free.key AND free.id IS NULL
    ), given AS (
        UPDATE holdfast.lock AS l SET holder = free.id, lane = free.lane, rank = free.rank
        FROM free WHERE l.key = free.key AND free.id IS NOT NULL
    ), moved AS (
        DELETE FROM holdfast.blocked AS b USING free
        WHERE b.lock_key = free.key AND b.rank = free.rank AND b.id = free.id
    ), lined_up AS (
        INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late, expires_at)
        SELECT
            free.id, free.rank, free.lane, free.attempt, free.flags,
            all_late OR free.rank < coalesce(floor.pending, free.rank), free.expires_at
        FROM free LEFT JOIN holdfast.floor ON floor.lane = free.lane
        WHERE free.id IS NOT NULL
    )
    INSERT INTO holdfast.tally (kind, key, n)
    SELECT kind, free.lane, sign * count(*)
    FROM free CROSS JOIN (VALUES ('blocked', -1), ('ready', 1)) AS change (kind, sign)
    WHERE free.id IS NOT NULL GROUP BY kind, sign, free.lane;

    FOR held IN
        SELECT l.*
        FROM (SELECT DISTINCT wanted FROM unnest(keys) AS wanted) AS k
        JOIN holdfast.lock AS l ON l.key = k.wanted
        CROSS JOIN LATERAL (
            SELECT b.rank, b.id FROM holdfast.blocked AS b
            WHERE b.lock_key = l.key ORDER BY b.rank, b.id LIMIT 1
        ) AS first
        WHERE (first.rank, first.id) < (l.rank, l.holder)
        ORDER BY l.key
    LOOP
        PERFORM holdfast.change_places(held);
    END LOOP;
END $$;

-- Let the first that is blocked have the key of a holder that stands behind it, unless that has
-- started.
CREATE OR REPLACE FUNCTION holdfast.change_places(held holdfast.lock) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    first holdfast.blocked;
    back holdfast.ready;
BEGIN
    DELETE FROM holdfast.ready AS r
    WHERE r.lane = held.lane AND r.late IN (false, true) AND r.rank = held.rank
    AND r.id = held.holder
    RETURNING * INTO back;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO first FROM holdfast.blocked AS b WHERE b.lock_key = held.key
    ORDER BY b.rank, b.id LIMIT 1;
    DELETE FROM holdfast.blocked AS b
    WHERE b.lock_key = held.key AND b.rank = first.rank AND b.id = first.id;
    INSERT INTO holdfast.blocked (lock_key, rank, id, lane, attempt, flags, expires_at)
    VALUES (held.key, back.rank, back.id, back.lane, back.attempt, back.flags, back.expires_at);
    PERFORM holdfast.line_up(
        first.id, first.rank, first.lane, first.attempt, first.flags, first.expires_at
    );
    UPDATE holdfast.lock AS l SET holder = first.id, lane = first.lane, rank = first.rank
    WHERE l.key = held.key;
    INSERT INTO holdfast.tally VALUES
        ('ready', back.lane, -1), ('blocked', back.lane, 1),
        ('blocked', first.lane, -1), ('ready', first.lane, 1);
END $$;

-- How a task shows: by the place it is in.
CREATE OR REPLACE FUNCTION holdfast.state_of(id uuid) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN coalesce(
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
    );
END $$;
