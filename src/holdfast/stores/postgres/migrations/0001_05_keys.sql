-- Which submits are new work and which repeat some.

-- Take the unique and idempotency keys of a batch; answers which positions repeat a task, which one,
-- and by which key. First every key's row is locked, in order: made, or touched if it is there. Then
-- the batch is walked in its own order, undisturbed. What turns out not to be needed is removed.
CREATE FUNCTION holdfast.take_keys(
    ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[],
    until bigint, at bigint,
    OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    has_doubles boolean := cardinality(ids) > (SELECT count(DISTINCT i) FROM unnest(ids) AS i);
    seen holdfast.idempotency;
    first uuid;
    outcome text;
BEGIN
    repeats := '{}';
    INSERT INTO holdfast.idempotency (key, expires_at)
    SELECT DISTINCT k, 0 FROM unnest(idempotency_keys) AS k WHERE k IS NOT NULL ORDER BY k
    ON CONFLICT (key) DO UPDATE SET key = excluded.key;
    INSERT INTO holdfast.unique_key (name, key)
    SELECT DISTINCT n, k FROM unnest(names, unique_keys) AS given (n, k)
    WHERE k IS NOT NULL ORDER BY n, k
    ON CONFLICT (name, key) DO UPDATE SET key = excluded.key;

    FOR i IN 1 .. cardinality(ids) LOOP
        CONTINUE WHEN unique_keys[i] IS NULL AND idempotency_keys[i] IS NULL;
        CONTINUE WHEN EXISTS (SELECT 1 FROM holdfast.task WHERE task.id = ids[i]);
        CONTINUE WHEN has_doubles AND ids[i] = ANY (ids[1 : i - 1]) AND i <> ALL (repeats)
            AND array_position(ids, ids[i]) <> ALL (repeats);
        first := NULL;
        IF idempotency_keys[i] IS NOT NULL THEN
            SELECT * INTO seen FROM holdfast.idempotency AS s WHERE s.key = idempotency_keys[i];
            IF seen.id IS NOT NULL AND seen.expires_at > at THEN
                IF seen.fingerprint IS DISTINCT FROM fingerprints[i] THEN
                    RAISE EXCEPTION 'idempotency key % came with another body', seen.key
                    USING ERRCODE = 'HF002', DETAIL = seen.key, HINT = seen.id::text;
                END IF;
                first := seen.id;
                outcome := 'idempotency_key';
            END IF;
        END IF;
        IF first IS NULL AND unique_keys[i] IS NOT NULL THEN
            SELECT u.id INTO first FROM holdfast.unique_key AS u
            WHERE u.name = names[i] AND u.key = unique_keys[i];
            outcome := 'unique_key';
        END IF;
        IF first IS NOT NULL THEN
            repeats := repeats || i;
            firsts := firsts || first;
            outcomes := outcomes || outcome;
            CONTINUE;
        END IF;
        UPDATE holdfast.idempotency AS s
        SET id = ids[i], fingerprint = fingerprints[i], expires_at = until
        WHERE s.key = idempotency_keys[i];
        UPDATE holdfast.unique_key AS u SET id = ids[i]
        WHERE u.name = names[i] AND u.key = unique_keys[i];
    END LOOP;

    DELETE FROM holdfast.idempotency AS s WHERE s.key = ANY (idempotency_keys) AND s.id IS NULL;
    DELETE FROM holdfast.unique_key AS u
    USING unnest(names, unique_keys) AS given (n, k)
    WHERE u.name = given.n AND u.key = given.k AND u.id IS NULL;
END $$;

-- Lock the rows of the unique keys that these tasks have, in order.
CREATE FUNCTION holdfast.hold_unique_keys(ids uuid[]) RETURNS void
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
