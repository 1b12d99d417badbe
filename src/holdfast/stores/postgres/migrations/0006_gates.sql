-- Gates: what keeps an eligible task from being ready (`core/gate.py`). Locks are the first kind of
-- them; those that are held, and who stands before them, stay as they are.
--
-- `flags` gets five more:
--     32 gates beside its lock, or instead of one   64 somebody stands behind its end (its own latch)
--     128 its end counts latches                    256 a rate, which counts its start
--     512 several gates of one kind
-- Tasks without these pay nothing for them.

-- Everybody is at work. In the order in which they take these, so that nobody waits crosswise.
LOCK TABLE holdfast.worker, holdfast.lock, holdfast.task, holdfast.blocked IN ACCESS EXCLUSIVE MODE;

-- A gate is known while anybody holds it, stands before it or has set its capacity; a latch also when
-- it was opened, a rate for the period after its last start. Whoever changes anything about a gate or
-- the line before it has its row locked. Times in microseconds.
CREATE TABLE holdfast.gate (
    name text COLLATE "C" NOT NULL PRIMARY KEY, -- kind:key
    capacity integer NOT NULL DEFAULT 1,
    period bigint NOT NULL DEFAULT 0,
    pinned integer, -- the capacity that somebody has set
    held integer NOT NULL DEFAULT 0,
    holder uuid, -- of a lock: ready (in this lane, at this rank) or running, or before a later gate
    lane integer,
    rank bigint,
    starts bigint[] NOT NULL DEFAULT '{}', -- of a rate: how many, when the last of them was, …
    "left" integer NOT NULL DEFAULT 0, -- of a latch, as are `failed` and `opened_at`
    failed integer NOT NULL DEFAULT 0,
    opened_at bigint,
    look_at bigint -- when to go through it though nobody comes or leaves
) WITH (
    fillfactor = 50, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 20000
);

CREATE INDEX gate_look ON holdfast.gate (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX gate_opened ON holdfast.gate (opened_at) WHERE opened_at IS NOT NULL;

INSERT INTO holdfast.gate (name, held, holder, lane, rank)
SELECT 'lock:' || key, 1, holder, lane, rank FROM holdfast.lock;

-- Is eligible, but a gate is closed. A view still reads the old table: it goes after the routines
-- were made anew (`98_old_tables.sql`).
ALTER TABLE holdfast.blocked RENAME TO blocked_by_lock;
ALTER INDEX holdfast.blocked_pkey RENAME TO blocked_by_lock_pkey;

CREATE TABLE holdfast.blocked (
    gate text COLLATE "C" NOT NULL,
    rank bigint NOT NULL,
    id uuid NOT NULL,
    lane integer NOT NULL,
    attempt integer NOT NULL,
    flags smallint NOT NULL,
    expires_at bigint,
    passed smallint NOT NULL DEFAULT 0, -- how many gates it has behind it, and holds
    gates text[], -- all that it must pass, in their order; NULL: this one
    PRIMARY KEY (gate, rank, id)
) WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

CREATE INDEX blocked_by_several ON holdfast.blocked (gate) WHERE flags & 512 <> 0;

INSERT INTO holdfast.blocked (gate, rank, id, lane, attempt, flags, expires_at)
SELECT 'lock:' || lock_key, rank, id, lane, attempt, flags, expires_at FROM holdfast.blocked_by_lock;

ALTER TABLE holdfast.task
ADD COLUMN gates text, -- JSON, as they were given; NULL if the lock is all
ADD COLUMN passes text[], -- the names of all gates, its lock among them, in the order of passing
ADD COLUMN counts text[]; -- latches that its end counts down

-- What had locks only, and what grew by a parameter or answers something else.
DROP FUNCTION IF EXISTS holdfast.change_places(holdfast.lock);
DROP FUNCTION IF EXISTS holdfast.hold_locks(text[]);
DROP FUNCTION IF EXISTS holdfast.settle_locks(text[]);
DROP FUNCTION IF EXISTS holdfast.line_up(uuid, bigint, integer, integer, smallint, bigint);
DROP FUNCTION IF EXISTS holdfast.start_carefully(tid[], integer, bigint);
DROP FUNCTION IF EXISTS holdfast.release_keys(uuid[]);
DROP FUNCTION IF EXISTS holdfast.take_merged(integer[], boolean[], bigint[], integer, bigint);
DROP FUNCTION IF EXISTS holdfast.answers(uuid[], text[], integer[], uuid[], text[], boolean);
DROP FUNCTION IF EXISTS holdfast.add_rows(
    text[], text[], bytea[], integer[], bigint[], bigint[], double precision[], bigint[], bigint[],
    bigint[], bigint[], text[], text[], text[], text[], text[], text[], text[], text[], text[],
    bigint, bigint, boolean, text[], text[]
);
DROP FUNCTION IF EXISTS holdfast.complete_within(
    text, integer, text, integer, integer, bytea, text, double precision, bigint, bigint, text, bigint
);
DROP FUNCTION IF EXISTS holdfast.put_in_line(holdfast.going_on[], bigint);
DROP TYPE holdfast.going_on;
DROP TABLE holdfast.lock;

-- A task on its way to where it waits for its turn. `passes`: NULL without gates.
CREATE TYPE holdfast.going_on AS (
    id uuid,
    rank bigint,
    lane integer,
    attempt integer,
    flags smallint,
    passes text[],
    expires_at bigint,
    due bigint,
    retrying boolean
);

-- Workers of version 1 go on, with the claim of this release: starts are counted.
DO $do$
BEGIN
    IF to_regprocedure('holdfast.claim(text, text[], text[], integer, bigint)') IS NULL THEN
        RETURN;
    END IF;
    CREATE OR REPLACE FUNCTION holdfast.claim(
        worker text, queues text[], capabilities text[], max integer, now bigint DEFAULT NULL
    ) RETURNS TABLE (
        id text, rank bigint, lane integer, attempt integer, name text, payload bytea,
        max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint,
        trace text, owner text, charged integer, crash_count integer, cause text
    )
    LANGUAGE plpgsql
    AS $$
    #variable_conflict use_column
    BEGIN
        RETURN QUERY SELECT
            one.id, one.rank, g.lane, g.attempt, g.name, one.payload, g.max_retries, g.timeout,
            g.retry, g.lock_key, g.fence, g.trace, g.owner, g.charged, g.crash_count, g.cause
        FROM holdfast.claim_groups(
            claim.worker, claim.queues, claim.capabilities, claim.max, claim.now
        ) AS g
        CROSS JOIN LATERAL unnest(g.ids, g.ranks, g.payloads) AS one (id, rank, payload);
    END $$;
END $do$;
