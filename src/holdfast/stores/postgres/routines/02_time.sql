-- Time, numbers and small things that the functions after these share.
--
-- A body after RETURN is read when the function is made: whoever calls it, under whatever search_path,
-- gets what was meant here, and the planner may still put it in place of the call. All other functions
-- get a search_path of their own (`99_search_path.sql`), which costs that.

-- Now in microseconds. Tests bring their own; nobody else does.
CREATE OR REPLACE FUNCTION holdfast.now_us(given bigint DEFAULT NULL) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

CREATE OR REPLACE FUNCTION holdfast.as_time(us bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT
RETURN timestamptz 'epoch' + us * interval '1 microsecond';

-- The smallest UUIDv7 of an instant.
CREATE OR REPLACE FUNCTION holdfast.first_id(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT
RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- A fresh UUIDv7, for tasks that are submitted in SQL.
CREATE OR REPLACE FUNCTION holdfast.new_id() RETURNS uuid
LANGUAGE sql VOLATILE
AS $$
    SELECT (
        lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(made, 14, 3) || substr(made, 17)
    )::uuid
    FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS made) AS random
$$;

-- The lane of that kind, made if there is none.
CREATE OR REPLACE FUNCTION holdfast.lane_of(queue text, requires text[], priority text) RETURNS integer
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    sorted text[] := ARRAY(SELECT DISTINCT word FROM unnest(lane_of.requires) AS word ORDER BY word);
    found integer;
BEGIN
    LOOP
        SELECT id INTO found FROM holdfast.lane
        WHERE queue = lane_of.queue AND requires = sorted AND priority = lane_of.priority;
        EXIT WHEN found IS NOT NULL;
        INSERT INTO holdfast.lane (queue, requires, priority)
        VALUES (lane_of.queue, sorted, lane_of.priority)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found;
END $$;

-- Sum up what was counted, so that there are few rows to read. Whoever comes second lets it be.
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

-- Seconds as microseconds, rounded to the nearest; more than all of time is cut.
CREATE OR REPLACE FUNCTION holdfast.as_us(seconds double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
RETURN round(greatest(-6e16, least(seconds * 1000000, 2.5e17)))::bigint;

-- An array, or NULL if there is nothing in it but NULLs.
CREATE OR REPLACE FUNCTION holdfast.or_null(words text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN array_remove(words, NULL) <> '{}' THEN words END;

-- What a priority is worth in line with the default aging (`core.priority`).
CREATE OR REPLACE FUNCTION holdfast.head_start(priority text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
RETURN CASE priority
    WHEN 'critical' THEN 3153600000000000 WHEN 'high' THEN 1800000000
    WHEN 'normal' THEN 600000000 ELSE 0
END;

-- Bytes for people: as text if they are any.
CREATE OR REPLACE FUNCTION holdfast.as_text(bytes bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT
AS $$
BEGIN
    RETURN convert_from(bytes, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN encode(bytes, 'base64');
END $$;
