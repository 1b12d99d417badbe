-- Functions and views moved out of the migrations: they are made anew after every one (see
-- `routines/`). This clears away what is in the way of that.

-- Workers sweep these two themselves, much sooner than autovacuum would; it is there if they do not.
ALTER TABLE holdfast.ready SET (autovacuum_vacuum_threshold = 500000);
ALTER TABLE holdfast.run SET (autovacuum_vacuum_threshold = 500000);

-- Shorter forms of today's functions, from version 1: a call without the last argument fits both.
DROP FUNCTION IF EXISTS holdfast.register(
    text, text, integer, text, text[], text[], integer, integer, text, bigint, bigint
);
DROP FUNCTION IF EXISTS holdfast.add_rows(
    text[], text[], bytea[], integer[], bigint[], bigint[], double precision[], bigint[], bigint[],
    bigint[], bigint[], text[], text[], text[], text[], text[], text[], text[], text[], text[],
    bigint, bigint, boolean
);

-- Workers of version 1 go on, with the `claim` and `save` that were installed for them. What their
-- `save` calls must know of callbacks, so it passes everything on to what this release has.
DO $do$
BEGIN
    IF to_regprocedure('holdfast.complete(text, text[], integer[], bytea[], bigint)') IS NULL THEN
        RETURN;
    END IF;
    CREATE OR REPLACE FUNCTION holdfast.complete(
        worker text, ids text[], attempts integer[], results bytea[], now bigint DEFAULT NULL
    ) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
    BEGIN
        RETURN holdfast.complete(
            complete.worker, complete.ids::uuid[], complete.attempts, complete.results, complete.now
        );
    END $$;
END $do$;
