-- name: add_within
SELECT task_id, outcome, state
FROM holdfast.add_within($1::text::json, $2::double precision, $3::bigint) ORDER BY "position";

-- name: holds_lease
SELECT true FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
WHERE r.id = $1::text::uuid AND r.attempt = $2::integer AND w.id = $3::text;

-- name: complete_within
SELECT holdfast.complete_within(
    $1::text, $2::integer, $3::text, $4::integer, $5::integer, $6::bytea, $7::text,
    $8::double precision, $9::bigint, $10::bigint, $11::text, $12::bigint
);

-- name: was_completed
SELECT holdfast.was_completed($1::text, $2::integer, $3::text);
