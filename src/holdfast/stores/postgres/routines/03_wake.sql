-- Who sleeps, and how to wake them.
--
--     sleep(process text, queues text[], seconds double precision) -> void
--         Register: this process is about to sleep; queues NULL means every queue. Repeat to
--         prolong; the queues of the last call count. Commit, claim once more, then sleep.
--     awake(process text) -> void
--         Deregister.
--     wake(queues text[]) -> integer
--         NOTIFY channel 'holdfast' once per queue that somebody sleeps for, with the queue's name
--         as the payload; says how many. Does nothing at all if nobody sleeps.
--
-- The channel has the name of the schema.

CREATE OR REPLACE FUNCTION holdfast.sleep(process text, queues text[], seconds double precision) RETURNS void
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    wanted text[] := coalesce(sleep.queues, ARRAY['']);
BEGIN
    DELETE FROM holdfast.sleeper WHERE process = sleep.process AND queue <> ALL (wanted);
    DELETE FROM holdfast.sleeper WHERE awake_at < clock_timestamp() - interval '1 minute';
    INSERT INTO holdfast.sleeper (process, queue, awake_at)
    SELECT sleep.process, name, clock_timestamp() + sleep.seconds * interval '1 second'
    FROM unnest(wanted) AS name
    ON CONFLICT (queue, process) DO UPDATE SET awake_at = excluded.awake_at;
END $$;

CREATE OR REPLACE FUNCTION holdfast.awake(process text) RETURNS void
LANGUAGE sql
AS $$ DELETE FROM holdfast.sleeper WHERE sleeper.process = awake.process $$;

-- In plpgsql, which keeps its plans: this runs inside of submits.
CREATE OR REPLACE FUNCTION holdfast.wake(queues text[]) RETURNS integer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    called integer := 0;
    name text;
BEGIN
    FOREACH name IN ARRAY queues LOOP
        IF EXISTS (
            SELECT 1 FROM holdfast.sleeper AS s
            WHERE s.queue IN (name, '') AND s.awake_at > clock_timestamp()
        ) THEN
            PERFORM pg_notify('holdfast', name); -- the same twice in a transaction is sent once
            called := called + 1;
        END IF;
    END LOOP;
    RETURN called;
END $$;
