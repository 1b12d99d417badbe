-- These run on connections that are not ours, under any search_path.

-- name: add_within
SELECT task_id, outcome, state
FROM holdfast.add_within($1::pg_catalog.text::pg_catalog.json, $2::double precision, $3::bigint) ORDER BY "position";

-- name: holds_lease
SELECT holdfast.holds_lease($1::pg_catalog.text, $2::integer, $3::pg_catalog.text);

-- name: complete_within
SELECT holdfast.complete_within(
    $1::pg_catalog.text, $2::integer, $3::pg_catalog.text, $4::integer, $5::integer,
    $6::pg_catalog.bytea, $7::pg_catalog.text,
    $8::double precision, $9::bigint, $10::bigint, $11::pg_catalog.text, $12::bigint
);

-- name: was_completed
SELECT holdfast.was_completed($1::text, $2::integer, $3::text);
