-- Workers and queues.

CREATE OR REPLACE FUNCTION holdfast.register(
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

CREATE OR REPLACE FUNCTION holdfast.beat(
    worker text, load integer, status text, now bigint DEFAULT NULL, blocked_by text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.worker AS w
    SET beats = w.beats + 1, beat_at = holdfast.now_us(beat.now),
        load = coalesce(beat.load, w.load), status = coalesce(beat.status, w.status),
        blocked_by = coalesce(beat.blocked_by, w.blocked_by)
    WHERE w.id = beat.worker AND w.status IN ('active', 'draining');
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION holdfast.bury(worker text, beats bigint) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.worker AS w SET status = 'dead'
    WHERE w.id = bury.worker AND w.status IN ('active', 'draining')
    AND w.beats = coalesce(bury.beats, w.beats);
    RETURN FOUND;
END $$;

-- For workers of the last release: since then it is a beat.
CREATE OR REPLACE FUNCTION holdfast.retire(worker text) RETURNS void
LANGUAGE sql
AS $$
    UPDATE holdfast.worker AS w SET status = 'stopped'
    WHERE w.id = retire.worker AND w.status IN ('active', 'draining')
$$;

-- The running tasks of workers that are gone. Usually there is no such worker that might have any,
-- and nothing is looked at. A worker is done with once nothing of it is found: a claim locks the row
-- of its worker, so whoever made it `dead` or `stopped` has waited for the last one.
CREATE OR REPLACE FUNCTION holdfast.orphans(max integer) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    gone integer[] := ARRAY(
        SELECT w.number FROM holdfast.worker AS w
        WHERE w.status NOT IN ('active', 'draining') AND NOT w.settled_up
    );
    found text[];
BEGIN
    IF gone = '{}' THEN
        RETURN '{}';
    END IF;
    found := ARRAY(
        SELECT r.id::text FROM holdfast.run AS r WHERE r.worker = ANY (gone)
        ORDER BY r.id LIMIT greatest(max, 0)
    );
    IF found = '{}' AND max > 0 THEN
        UPDATE holdfast.worker AS w SET settled_up = true
        WHERE w.number = ANY (gone)
        AND NOT EXISTS (SELECT 1 FROM holdfast.run AS r WHERE r.worker = ANY (gone));
    END IF;
    RETURN found;
END $$;

CREATE OR REPLACE FUNCTION holdfast.pause(queue text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.record (kind, key, version, document, "group", sort, written_by)
    VALUES ('pause', pause.queue, 1, '{}', '', '', '') ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION holdfast.resume(queue text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM holdfast.record AS r WHERE r.kind = 'pause' AND r.key = resume.queue;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION holdfast.ask_to_drain(worker text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.worker AS w SET drain_requested = true
    WHERE w.id = ask_to_drain.worker AND w.status IN ('active', 'draining');
    RETURN FOUND;
END $$;
