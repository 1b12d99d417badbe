-- name: add_token
SELECT holdfast.add_token(
    $1::text, $2::text, $3::text[], $4::bytea, $5::bigint, $6::text, $7::bigint
);

-- name: token
SELECT id, name, scopes, digest, created_at, expires_at, revoked_at, document
FROM holdfast.token WHERE id = $1::text;

-- name: tokens
SELECT id, name, scopes, digest, created_at, expires_at, revoked_at, document
FROM holdfast.token ORDER BY number DESC;

-- name: rewrite_token
SELECT holdfast.rewrite_token($1::text, $2::text);

-- name: revoke_token
SELECT holdfast.revoke_token($1::text, $2::bigint);
