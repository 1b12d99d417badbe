-- Partitions by day of `task` and `done`, made ahead and dropped when nothing in them is needed.

-- Make those of today and the days after, as far as they are missing; answers how many were. Whoever
-- comes second lets it be. If the default partition has rows for such a day already, it stays with
-- them there: nothing breaks, that day is pruned row by row. If somebody uses the tables for long (a
-- backup), it is left for another time: who waits for that lock makes all others wait.
CREATE OR REPLACE FUNCTION holdfast.add_partitions(days integer DEFAULT 3) RETURNS integer
LANGUAGE plpgsql
SET lock_timeout = '200ms'
AS $$
DECLARE
    first date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    day date;
    kind text;
    made integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('holdfast'), 3) THEN
        RETURN 0;
    END IF;
    FOREACH kind IN ARRAY ARRAY['task', 'done'] LOOP
        FOR ahead IN 0 .. days LOOP
            day := first + ahead;
            CONTINUE WHEN to_regclass(format('%I.%I', 'holdfast', kind || to_char(day, '_YYYYMMDD')))
            IS NOT NULL;
            BEGIN
                EXECUTE format(
                    'CREATE TABLE %I.%I PARTITION OF %I.%I FOR VALUES FROM (%L) TO (%L)',
                    'holdfast', kind || to_char(day, '_YYYYMMDD'), 'holdfast', kind,
                    holdfast.first_id(day AT TIME ZONE 'UTC'),
                    holdfast.first_id((day + 1) AT TIME ZONE 'UTC')
                );
                made := made + 1;
            EXCEPTION
                WHEN check_violation THEN NULL;
                WHEN lock_not_available THEN RETURN made;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

-- How many days ahead there is no partition for, tomorrow included.
CREATE OR REPLACE FUNCTION holdfast.missing_partitions(days integer DEFAULT 1) RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT count(*)::integer
    FROM generate_series(0, missing_partitions.days) AS ahead
    CROSS JOIN (VALUES ('task'), ('done')) AS parent (kind)
    WHERE to_regclass(format(
        '%I.%I', 'holdfast',
        kind || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + ahead, '_YYYYMMDD')
    )) IS NULL
$$;

-- Drop the oldest day if nearly all in it may go; answers how many tasks went. The few that must stay
-- (they run, wait, or are dead letters kept longer) move to the default partition. Nothing is done,
-- and nobody made to wait for long, if somebody is using the tables just now. A day with few tasks
-- is left to be pruned row by row, until it is empty.
CREATE OR REPLACE FUNCTION holdfast.drop_partition(
    retention bigint, dead_letter_retention bigint, now bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql
SET lock_timeout = '200ms'
AS $$
DECLARE
    at bigint := holdfast.now_us(drop_partition.now);
    day text;
    tasks text;
    ends text;
    whole bigint;
    stay uuid[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('holdfast'), 3) THEN
        RETURN 0;
    END IF;
    SELECT min(right(c.relname, 8)) INTO day
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass('holdfast.task') AND c.relname ~ '^task_[0-9]{8}$'
    AND to_date(right(c.relname, 8), 'YYYYMMDD') + 1
        < least(holdfast.as_time(at - drop_partition.retention), clock_timestamp())::date;
    IF day IS NULL OR to_regclass(format('%I.%I', 'holdfast', 'done_' || day)) IS NULL THEN
        RETURN 0;
    END IF;
    tasks := format('%I.%I', 'holdfast', 'task_' || day);
    ends := format('%I.%I', 'holdfast', 'done_' || day);
    EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', tasks, ends);
    EXECUTE format('SELECT count(*) FROM %s', tasks) INTO whole;
    IF whole BETWEEN 1 AND 999 THEN
        RETURN 0;
    END IF;
    EXECUTE format(
        'SELECT array_agg(t.id) FROM (
            SELECT t.id FROM %s AS t LEFT JOIN %s AS d ON d.id = t.id
            WHERE d.id IS NULL OR d.finished_at >= CASE d.state
                WHEN ''dead_letter'' THEN $1 ELSE $2 END
            LIMIT 10001
        ) AS t', tasks, ends
    ) INTO stay USING at - drop_partition.dead_letter_retention, at - drop_partition.retention;
    IF cardinality(stay) > 10000 THEN
        RETURN 0;
    END IF;
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', 'holdfast.task', tasks);
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', 'holdfast.done', ends);
    EXECUTE format(
        'INSERT INTO %s SELECT * FROM %s AS t WHERE t.id = ANY ($1)', 'holdfast.task', tasks
    ) USING stay;
    EXECUTE format(
        'INSERT INTO %s SELECT * FROM %s AS d WHERE d.id = ANY ($1)', 'holdfast.done', ends
    ) USING stay;
    EXECUTE format(
        'INSERT INTO %s SELECT d.state::text, d.finished_at / 1000000, -count(*) FROM %s AS d
        WHERE d.id <> ALL (coalesce($1, ''{}'')) GROUP BY 1, 2', 'holdfast.tally', ends
    ) USING stay;
    EXECUTE format(
        'DELETE FROM %s AS i USING %s AS t WHERE t.idempotency_key IS NOT NULL
        AND i.key = t.idempotency_key AND i.id = t.id AND t.id <> ALL (coalesce($1, ''{}''))',
        'holdfast.idempotency', tasks
    ) USING stay;
    PERFORM holdfast.forget_between(
        holdfast.first_id(to_date(day, 'YYYYMMDD') AT TIME ZONE 'UTC'),
        holdfast.first_id((to_date(day, 'YYYYMMDD') + 1) AT TIME ZONE 'UTC'), stay
    );
    EXECUTE format('DROP TABLE %s, %s', tasks, ends);
    RETURN whole - coalesce(cardinality(stay), 0);
EXCEPTION WHEN lock_not_available THEN
    RETURN 0;
END $$;

-- Forget what only some tasks have, of all tasks with such ids but these.
CREATE OR REPLACE FUNCTION holdfast.forget_between(first uuid, past uuid, but uuid[]) RETURNS void
LANGUAGE sql
AS $$
    DELETE FROM holdfast.extra AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.attempt AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.event AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
    DELETE FROM holdfast.journal AS x
    WHERE x.id >= first AND x.id < past AND x.id <> ALL (coalesce(but, '{}'));
$$;
