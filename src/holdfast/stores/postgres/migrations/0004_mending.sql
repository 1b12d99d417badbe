-- What the first users, operators and attackers found.

-- What a token is bound to, who made it, when it was last used: JSON (see `core/token.py`).
ALTER TABLE holdfast.token ADD COLUMN document text NOT NULL DEFAULT '{}';
DROP FUNCTION IF EXISTS holdfast.add_token(text, text, text[], bytea, bigint, bigint);
