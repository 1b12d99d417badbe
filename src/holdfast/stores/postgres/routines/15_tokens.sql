-- Tokens. Only their digests are kept.

-- A repeat changes nothing. Durations are microseconds.
CREATE OR REPLACE FUNCTION holdfast.add_token(
    token text, name text, scopes text[], digest bytea, expires_in bigint, document text,
    now bigint DEFAULT NULL
) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO holdfast.token (id, name, scopes, digest, created_at, expires_at, document)
    SELECT
        add_token.token, add_token.name, add_token.scopes, add_token.digest, at,
        at + add_token.expires_in, add_token.document
    FROM holdfast.now_us(add_token.now) AS at
    ON CONFLICT (id) DO NOTHING
$$;

CREATE OR REPLACE FUNCTION holdfast.rewrite_token(token text, document text) RETURNS void
LANGUAGE sql
AS $$
    UPDATE holdfast.token AS t SET document = rewrite_token.document WHERE t.id = rewrite_token.token
$$;

CREATE OR REPLACE FUNCTION holdfast.revoke_token(token text, now bigint DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.token AS t SET revoked_at = holdfast.now_us(revoke_token.now)
    WHERE t.id = revoke_token.token AND t.revoked_at IS NULL;
    RETURN FOUND;
END $$;
