-- What somebody may put into `public` who may create there: for all types that Holdfast uses, every
-- operator, and every function with a name that it calls. Whoever is caught leaves a number behind,
-- which no rollback takes back, and an error.

SET search_path = pg_catalog;
CREATE SEQUENCE public.caught;

CREATE FUNCTION public.make_traps(names text[], more regtype[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $make$
DECLARE
    types regtype[] := CASE WHEN more <> '{}' THEN more ELSE ARRAY[
        'smallint', 'integer', 'bigint', 'numeric', 'double precision', 'text', 'name', 'uuid',
        'bytea', 'boolean', 'date', 'timestamptz', 'interval', 'json', 'jsonb', 'oid',
        'text[]', 'uuid[]', 'integer[]', 'bigint[]'
    ]::regtype[] END;
    body text := 'LANGUAGE plpgsql SET search_path = pg_catalog AS $$ BEGIN
        PERFORM nextval(''public.caught''); RAISE EXCEPTION ''hostile code has run''; END $$';
    l regtype;
    r regtype;
    word text;
    given text;
BEGIN
    FOREACH l IN ARRAY types LOOP
        FOREACH r IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION public.compared(%s, %s) RETURNS boolean %s', l, r, body);
            EXECUTE format('CREATE FUNCTION public.joined(%s, %s) RETURNS %1$s %3$s', l, r, body);
            FOREACH word IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>=', '?', '~', '<@', '@>'] LOOP
                EXECUTE format(
                    'CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.compared)',
                    word, l, r
                );
            END LOOP;
            FOREACH word IN ARRAY ARRAY['+', '-', '*', '/', '&', '|', '||', '->', '->>'] LOOP
                EXECUTE format(
                    'CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.joined)',
                    word, l, r
                );
            END LOOP;
        END LOOP;
        FOREACH word IN ARRAY names LOOP
            EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %2$s %3$s', word, l, body);
            FOREACH r IN ARRAY ARRAY['text', 'integer', 'bigint']::regtype[] LOOP
                CONTINUE WHEN NOT EXISTS (
                    SELECT 1 FROM pg_proc WHERE proname = word AND pronargs = 2
                    AND pronamespace = 'pg_catalog'::regnamespace
                );
                EXECUTE format('CREATE FUNCTION public.%I(%s, %s) RETURNS %2$s %4$s', word, l, r, body);
            END LOOP;
        END LOOP;
    END LOOP;
    -- Without arguments, or with more: as PostgreSQL has them.
    FOR word, given, l IN
        SELECT DISTINCT p.proname, pg_get_function_identity_arguments(p.oid), p.prorettype FROM pg_proc AS p
        WHERE p.proname = ANY (names) AND p.pronamespace = 'pg_catalog'::regnamespace
        AND p.pronargs NOT IN (1, 2) AND p.prokind = 'f' AND p.provariadic = 0 AND more = '{}'
        AND p.prorettype::regtype::text NOT LIKE 'any%' AND NOT p.proretset
    LOOP
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s', word, given, l, body);
    END LOOP;
END $make$;
