-- What the first users, operators and attackers found.

-- What a token is bound to, who made it, when it was last used: JSON (see `core/token.py`).
ALTER TABLE holdfast.token ADD COLUMN document text NOT NULL DEFAULT '{}';
DROP FUNCTION IF EXISTS holdfast.add_token(text, text, text[], bytea, bigint, bigint);

-- The task whose body keeps the worker's event loop; empty: none.
ALTER TABLE holdfast.worker ADD COLUMN blocked_by text NOT NULL DEFAULT '';

-- What grew by a parameter: callers that do not know it yet are served by its default.
DROP FUNCTION IF EXISTS holdfast.save(
    text, uuid[], integer[], bytea[], text[], integer[], text[], text[], text[], integer[],
    integer[], bytea[], text[], bigint[], text[], text[], bigint
);
DROP FUNCTION IF EXISTS holdfast.settle(
    text[], integer[], text[], text[], text[], integer[], integer[], bytea[], text[], bigint[],
    text[], text[], bigint
);
DROP FUNCTION IF EXISTS holdfast.settle_one(
    uuid, integer, text, text, text, integer, integer, bytea, text, bigint, text, text, bigint
);
DROP FUNCTION IF EXISTS holdfast.cancel(text[], text[], bigint);
DROP FUNCTION IF EXISTS holdfast.end_idle(uuid[], text, bigint, text[]);
DROP FUNCTION IF EXISTS holdfast.beat(text, integer, text, bigint);

-- Dead ends in the order of their ends.
CREATE INDEX done_died ON holdfast.done (finished_at, id) WHERE state <> 'completed';
