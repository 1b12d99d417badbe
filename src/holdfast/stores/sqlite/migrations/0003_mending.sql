-- What the first users, operators and attackers found.

-- What a token is bound to, who made it, when it was last used: JSON (see `core/token.py`).
ALTER TABLE token ADD COLUMN document TEXT NOT NULL DEFAULT '{}';

-- Stays the last line.
PRAGMA user_version = 3;
