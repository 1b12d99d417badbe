-- name: claim
SELECT * FROM holdfast.claim_groups($1::text, $2::text[], $3::text[], $4::integer, $5::bigint);

-- name: orphans
SELECT holdfast.orphans($1::integer);
