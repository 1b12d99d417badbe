-- name: save
SELECT n, holder FROM holdfast.save(
    $1::text, $2::uuid[], $3::integer[], $4::bytea[], $5::text[], $6::integer[], $7::text[],
    $8::text[], $9::text[], $10::integer[], $11::integer[], $12::bytea[], $13::text[],
    $14::bigint[], $15::text[], $16::text[], $17::bigint, $18::text[]
)
UNION ALL SELECT 0, p.passed FROM holdfast.passed_on() AS p (passed) WHERE p.passed IS NOT NULL;

-- name: gates_of_tasks
SELECT id::text, lock_key, gates FROM holdfast.task WHERE id = ANY ($1::text[]::uuid[]);

-- name: stand_behind
-- The wide row is written anew, which is rare: a task that runs has other gates from now on.
WITH given AS (
    SELECT g.id::uuid AS id, g.gates, ARRAY(SELECT json_array_elements_text(g.passes::json)) AS passes
    FROM unnest($1::text[], $2::text[], $3::text[]) AS g (id, gates, passes)
), asked AS (
    UPDATE holdfast.task AS t SET gates = g.gates, passes = g.passes FROM given AS g WHERE t.id = g.id
)
UPDATE holdfast.run AS r SET flags = r.flags | holdfast.flags_of(g.passes)::smallint
FROM given AS g WHERE r.id = g.id;

-- name: report
SELECT n, holder FROM holdfast.report(
    $1::text[], $2::integer[], $3::text[], $4::text[], $5::double precision[], $6::bigint[],
    $7::bigint[], $8::text[], $9::bigint
);

-- name: count_refusals
INSERT INTO holdfast.tally VALUES ('refused', 0, $1::integer);
