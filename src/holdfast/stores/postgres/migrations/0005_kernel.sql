-- Records: small versioned documents for everything that is no task. Tokens and pauses are the first
-- of them. Text is compared byte by byte, whatever the database's language is.
CREATE TABLE holdfast.record (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    document text NOT NULL, -- JSON
    "group" text COLLATE "C" NOT NULL,
    sort text COLLATE "C" NOT NULL,
    due_at bigint,
    written_by text NOT NULL, -- the commit that wrote it last
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 80);

CREATE INDEX record_group ON holdfast.record (kind, "group", sort, key);
CREATE INDEX record_due ON holdfast.record (kind, due_at, key) WHERE due_at IS NOT NULL;

INSERT INTO holdfast.record (kind, key, version, document, "group", sort, written_by)
SELECT 'pause', queue, 1, '{}', '', '', '' FROM holdfast.paused_queue;
DROP TABLE holdfast.paused_queue;

INSERT INTO holdfast.record (kind, key, version, document, "group", sort, written_by)
SELECT 'token', t.id, 1, (
    t.document::jsonb || jsonb_strip_nulls(jsonb_build_object(
        'name', t.name, 'scopes', to_jsonb(t.scopes), 'digest', encode(t.digest, 'hex'),
        'created_at', t.created, 'expires_at', t.expires, 'revoked_at', t.revoked
    ))
)::text, '', t.created, ''
FROM (
    SELECT
        old.*,
        to_char(to_timestamp(created_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.')
        || lpad((created_at % 1000000)::text, 6, '0') || '+00:00' AS created,
        to_char(to_timestamp(expires_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.')
        || lpad((expires_at % 1000000)::text, 6, '0') || '+00:00' AS expires,
        to_char(to_timestamp(revoked_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.')
        || lpad((revoked_at % 1000000)::text, 6, '0') || '+00:00' AS revoked
    FROM holdfast.token AS old
) AS t;
DROP TABLE holdfast.token;
DROP FUNCTION IF EXISTS holdfast.add_token(text, text, text[], bytea, bigint, text, bigint);
DROP FUNCTION IF EXISTS holdfast.rewrite_token(text, text);
DROP FUNCTION IF EXISTS holdfast.revoke_token(text, bigint);

DROP FUNCTION IF EXISTS holdfast.settle_one(
    uuid, integer, text, text, text, integer, integer, bytea, text, bigint, text, text, text, bigint
);
DROP FUNCTION IF EXISTS holdfast.put_back(
    uuid, bigint, integer, integer, smallint, text, bigint, bigint, boolean, bigint
);
DROP FUNCTION IF EXISTS holdfast.take_out(uuid, integer, bigint, text);
DROP FUNCTION IF EXISTS holdfast.renew(
    uuid, integer, text, text, text, bigint, bigint, bigint, text[]
);
DROP FUNCTION IF EXISTS holdfast.hurry(uuid, integer, bigint, text, bigint, bigint);

-- A task on its way to where it waits for its turn.
CREATE TYPE holdfast.going_on AS (
    id uuid,
    rank bigint,
    lane integer,
    attempt integer,
    flags smallint,
    lock_key text,
    expires_at bigint,
    due bigint,
    retrying boolean
);

-- What the steps of a task came to, once each.
CREATE TABLE holdfast.journal (
    id uuid NOT NULL,
    step text NOT NULL,
    result bytea NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (id, step)
);
