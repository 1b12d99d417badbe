-- Workers, tokens, and the fold of numbers that has learnt of lanes.

-- One argument more: both would do for a call without it.
DROP FUNCTION holdfast.register(
    text, text, integer, text, text[], text[], integer, integer, text, bigint, bigint
);

CREATE FUNCTION holdfast.register(
    worker text, host text, pid integer, version text, queues text[], capabilities text[],
    capacity integer, load integer, status text, beats bigint, now bigint DEFAULT NULL,
    kind text DEFAULT 'python'
) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.worker (
        id, host, pid, version, queues, capabilities, capacity, load, status, beats, started_at,
        beat_at, kind
    )
    SELECT
        register.worker, register.host, register.pid, register.version, register.queues,
        register.capabilities, register.capacity, register.load, register.status, register.beats,
        at, at, register.kind
    FROM holdfast.now_us(register.now) AS at
    ON CONFLICT (id) DO NOTHING
$$;

CREATE FUNCTION holdfast.ask_to_drain(worker text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.worker AS w SET drain_requested = true
    WHERE w.id = ask_to_drain.worker AND w.status IN ('active', 'draining');
    RETURN FOUND;
END $$;

-- A repeat changes nothing. Durations are microseconds.
CREATE FUNCTION holdfast.add_token(
    token text, name text, scopes text[], digest bytea, expires_in bigint, now bigint DEFAULT NULL
) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.token (id, name, scopes, digest, created_at, expires_at)
    SELECT
        add_token.token, add_token.name, add_token.scopes, add_token.digest, at,
        at + add_token.expires_in
    FROM holdfast.now_us(add_token.now) AS at
    ON CONFLICT (id) DO NOTHING
$$;

CREATE FUNCTION holdfast.revoke_token(token text, now bigint DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.token AS t SET revoked_at = holdfast.now_us(revoke_token.now)
    WHERE t.id = revoke_token.token AND t.revoked_at IS NULL;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION holdfast.fold_tally(now bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    long_ago bigint := holdfast.now_us(fold_tally.now) / 1000000 - 120;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('holdfast'), 2) THEN
        RETURN;
    END IF;
    WITH counted AS (
        DELETE FROM holdfast.tally RETURNING kind, key, n, lane,
            kind IN ('completed', 'failed', 'cancelled', 'dead_letter') AND key < long_ago AS is_old
    ), settled AS (
        SELECT
            kind, n, CASE WHEN is_old THEN 0 ELSE key END AS key,
            CASE WHEN NOT is_old THEN lane END AS lane
        FROM counted
    )
    INSERT INTO holdfast.tally (kind, key, n, lane)
    SELECT kind, key, sum(n), lane FROM settled GROUP BY kind, key, lane HAVING sum(n) <> 0;
END $$;
