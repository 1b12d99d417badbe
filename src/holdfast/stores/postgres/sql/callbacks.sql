-- name: due_callbacks
SELECT id, url, tries, ended_at
FROM holdfast.due_callbacks($1::integer, $2::bigint, $3::bigint);

-- name: callback_done
SELECT holdfast.callback_done(
    $1::text, $2::integer, $3::bigint, $4::bigint, $5::text, $6::bigint
);
