-- name: add
INSERT INTO token (id, name, scopes, digest, created_at, expires_at, document)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: rewrite
UPDATE token SET document = ? WHERE id = ?;

-- name: get
SELECT * FROM token WHERE id = ?;

-- name: all
SELECT * FROM token ORDER BY seq DESC;

-- name: revoke
UPDATE token SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;
