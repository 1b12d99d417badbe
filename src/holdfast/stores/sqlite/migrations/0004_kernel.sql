-- Records: small versioned documents for everything that is no task. Tokens and pauses are the first
-- of them.
CREATE TABLE record (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    document TEXT NOT NULL, -- JSON
    "group" TEXT NOT NULL,
    sort TEXT NOT NULL,
    due_at INTEGER,
    written_by TEXT NOT NULL, -- the commit that wrote it last
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX record_group ON record (kind, "group", sort, key);
CREATE INDEX record_due ON record (kind, due_at, key) WHERE due_at IS NOT NULL;

INSERT INTO record (kind, key, version, document, "group", sort, written_by)
SELECT 'pause', queue, 1, '{}', '', '', '' FROM paused_queue;
DROP TABLE paused_queue;

INSERT INTO record (kind, key, version, document, "group", sort, written_by)
SELECT 'token', id, 1, json_patch(document, json_object(
    'name', name, 'scopes', json(scopes), 'digest', lower(hex(digest)), 'created_at', created,
    'expires_at', expires, 'revoked_at', revoked
)), '', created, ''
FROM (
    SELECT
        *,
        strftime('%Y-%m-%dT%H:%M:%S', created_at / 1000000, 'unixepoch')
        || printf('.%06d+00:00', created_at % 1000000) AS created,
        strftime('%Y-%m-%dT%H:%M:%S', expires_at / 1000000, 'unixepoch')
        || printf('.%06d+00:00', expires_at % 1000000) AS expires,
        strftime('%Y-%m-%dT%H:%M:%S', revoked_at / 1000000, 'unixepoch')
        || printf('.%06d+00:00', revoked_at % 1000000) AS revoked
    FROM token
);
DROP TABLE token;

-- What the steps of a task came to, once each.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    step TEXT NOT NULL,
    result BLOB NOT NULL,
    UNIQUE (task, step)
) STRICT;

-- Stays the last line.
PRAGMA user_version = 4;
