-- Which submits are new work and which repeat some.

-- A key as it is kept, and as it was given: `core/keys.py` in SQL, for submits and eyes from here.
CREATE OR REPLACE FUNCTION holdfast.stored_key(owner text, key text) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN stored_key.owner IS NULL AND NOT starts_with(stored_key.key, chr(31)) THEN stored_key.key
        ELSE chr(31) || left(
            encode(sha256(convert_to(coalesce(stored_key.owner, ''), 'UTF8')), 'hex'), 32
        ) || stored_key.key
    END
$$;

CREATE OR REPLACE FUNCTION holdfast.shown_key(key text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE
    WHEN starts_with(shown_key.key, chr(31)) THEN substr(shown_key.key, 34) ELSE shown_key.key
END;

-- Take the unique and idempotency keys of a batch; answers which positions repeat a task, which one,
-- and by which key. First the keys' rows are made, in order, or found (`held_by`). If all are new, and
-- no key and no id comes twice, that is it. Otherwise the batch is walked in its own order, and what
-- turns out not to be needed is removed.
CREATE OR REPLACE FUNCTION holdfast.take_keys(
    ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[],
    until bigint, at bigint,
    OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    wanted bigint := coalesce(cardinality(array_remove(idempotency_keys, NULL)), 0)
        + coalesce(cardinality(array_remove(unique_keys, NULL)), 0);
    made bigint;
    held_by jsonb;
BEGIN
    repeats := '{}';
    WITH locked AS (
        INSERT INTO holdfast.idempotency AS i (key, expires_at)
        SELECT DISTINCT k, 0 FROM unnest(idempotency_keys) AS k WHERE k IS NOT NULL ORDER BY k
        ON CONFLICT (key) DO UPDATE SET expires_at = i.expires_at
        RETURNING i.id
    )
    SELECT count(*) FILTER (WHERE locked.id IS NULL) INTO made FROM locked;
    held_by := holdfast.hold_new_unique_keys(names, unique_keys);
    made := made + (SELECT count(*) FROM jsonb_each(held_by) AS h WHERE h.value = 'null');

    IF made < wanted
    OR EXISTS (SELECT 1 FROM holdfast.task WHERE task.id = ANY (ids))
    OR cardinality(ids) > (SELECT count(DISTINCT i) FROM unnest(ids) AS i)
    THEN
        SELECT * INTO repeats, firsts, outcomes FROM holdfast.take_keys_one_by_one(
            ids, names, unique_keys, idempotency_keys, fingerprints, held_by, until, at
        );
        RETURN;
    END IF;
    UPDATE holdfast.idempotency AS s
    SET id = given.id, fingerprint = given.fingerprint, expires_at = until
    FROM unnest(ids, idempotency_keys, fingerprints) AS given (id, key, fingerprint)
    WHERE s.key = given.key;
    UPDATE holdfast.unique_key AS u SET id = given.id
    FROM unnest(ids, names, unique_keys) AS given (id, name, key)
    WHERE u.name = given.name AND u.key = given.key;
END $$;

-- Make the rows of unique keys that nobody has; answers for each (a JSON array of name and key, as
-- text) who has it, null if it is new. Rows that are there are looked at and not locked: this may be
-- in somebody's long transaction, and the task that has the key must be able to end meanwhile.
CREATE OR REPLACE FUNCTION holdfast.hold_new_unique_keys(names text[], unique_keys text[]) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    held_by jsonb := '{}';
    found jsonb;
BEGIN
    LOOP
        WITH missing AS (
            SELECT DISTINCT g.name, g.key
            FROM unnest(names, unique_keys) AS g (name, key)
            WHERE g.key IS NOT NULL AND NOT held_by ? jsonb_build_array(g.name, g.key)::text
        ), made AS (
            INSERT INTO holdfast.unique_key (name, key)
            SELECT m.name, m.key FROM missing AS m ORDER BY m.name, m.key
            ON CONFLICT (name, key) DO NOTHING
            RETURNING name, key
        )
        SELECT jsonb_object_agg(jsonb_build_array(made.name, made.key)::text, NULL::text)
        INTO found FROM made;
        held_by := held_by || coalesce(found, '{}');

        SELECT jsonb_object_agg(jsonb_build_array(u.name, u.key)::text, u.id)
        INTO found
        FROM unnest(names, unique_keys) AS g (name, key)
        JOIN holdfast.unique_key AS u ON u.name = g.name AND u.key = g.key
        WHERE u.id IS NOT NULL AND NOT held_by ? jsonb_build_array(g.name, g.key)::text;
        held_by := held_by || coalesce(found, '{}');
        -- A key that was neither made nor found was let go in between: once more.
        EXIT WHEN (
            SELECT count(DISTINCT (g.name, g.key)) FROM unnest(names, unique_keys) AS g (name, key)
            WHERE g.key IS NOT NULL
        ) = (SELECT count(*) FROM jsonb_object_keys(held_by));
    END LOOP;
    RETURN held_by;
END $$;

CREATE OR REPLACE FUNCTION holdfast.take_keys_one_by_one(
    ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[],
    held_by jsonb, until bigint, at bigint,
    OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    given record;
    seen holdfast.idempotency;
    first uuid;
    outcome text;
    fresh jsonb := '{}'; -- the ids of this batch so far
BEGIN
    repeats := '{}';
    FOR given IN
        SELECT g.*, jsonb_build_array(g.name, g.unique_key)::text AS name_and_key
        FROM unnest(ids, names, unique_keys, idempotency_keys, fingerprints)
        WITH ORDINALITY AS g (id, name, unique_key, idempotency_key, fingerprint, n)
        ORDER BY g.n
    LOOP
        CONTINUE WHEN fresh ? given.id::text;
        CONTINUE WHEN EXISTS (SELECT 1 FROM holdfast.task WHERE task.id = given.id);
        first := NULL;
        IF given.idempotency_key IS NOT NULL THEN
            SELECT * INTO seen FROM holdfast.idempotency AS s WHERE s.key = given.idempotency_key;
            IF seen.id IS NOT NULL AND seen.expires_at > at THEN
                IF seen.fingerprint IS DISTINCT FROM given.fingerprint THEN
                    RAISE EXCEPTION 'idempotency key % came with another body', seen.key
                    USING ERRCODE = 'HF002', DETAIL = seen.key, HINT = seen.id::text;
                END IF;
                first := seen.id;
                outcome := 'idempotency_key';
            END IF;
        END IF;
        IF first IS NULL AND given.unique_key IS NOT NULL THEN
            first := (held_by ->> given.name_and_key)::uuid;
            outcome := 'unique_key';
        END IF;
        IF first IS NOT NULL THEN
            repeats := repeats || given.n::integer;
            firsts := firsts || first;
            outcomes := outcomes || outcome;
            CONTINUE;
        END IF;
        fresh := fresh || jsonb_build_object(given.id, true);
        UPDATE holdfast.idempotency AS s
        SET id = given.id, fingerprint = given.fingerprint, expires_at = until
        WHERE s.key = given.idempotency_key;
        IF given.unique_key IS NOT NULL THEN
            held_by := held_by || jsonb_build_object(given.name_and_key, given.id);
            UPDATE holdfast.unique_key AS u SET id = given.id
            WHERE u.name = given.name AND u.key = given.unique_key;
        END IF;
    END LOOP;

    DELETE FROM holdfast.idempotency AS s WHERE s.key = ANY (idempotency_keys) AND s.id IS NULL;
    DELETE FROM holdfast.unique_key AS u
    USING unnest(names, unique_keys) AS g (n, k)
    WHERE u.name = g.n AND u.key = g.k AND u.id IS NULL;
END $$;

-- Lock the rows of the unique keys that these tasks have, in order.
CREATE OR REPLACE FUNCTION holdfast.hold_unique_keys(ids uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    PERFORM 1
    FROM holdfast.task JOIN holdfast.unique_key AS u
    ON u.name = task.name AND u.key = task.unique_key
    WHERE task.id = ANY (ids) AND task.unique_key IS NOT NULL AND u.id = task.id
    ORDER BY u.name, u.key FOR UPDATE OF u;
END $$;
