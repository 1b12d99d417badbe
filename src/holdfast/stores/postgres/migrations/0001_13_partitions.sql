-- Partitions by day of `task` and `done`, made ahead and dropped when nothing in them is needed.

-- Make those of today and the days after, as far as they are missing; answers how many were. Whoever
-- comes second lets it be. If the default partition has rows for such a day already, it stays with
-- them there: nothing breaks, that day is pruned row by row.
CREATE FUNCTION holdfast.add_partitions(days integer DEFAULT 3) RETURNS integer
LANGUAGE plpgsql
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
            EXCEPTION WHEN check_violation THEN
                NULL;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
