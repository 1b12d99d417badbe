-- name: cancel
SELECT holdfast.cancel($1::text[], $2::text[], $3::bigint);

-- name: requeue
SELECT holdfast.requeue(
    $1::text[], $2::text[], $3::text::json, $4::double precision, $5::integer, $6::bigint
);

-- name: discard
SELECT holdfast.discard($1::text[], $2::text[]);

-- name: prune
SELECT holdfast.prune($1::bigint, $2::bigint, $3::integer, $4::bigint);

-- name: drop_partition
SELECT holdfast.drop_partition($1::bigint, $2::bigint, $3::bigint);

-- name: add_partitions
SELECT holdfast.add_partitions();
