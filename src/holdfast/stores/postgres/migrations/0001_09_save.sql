-- How attempts ended.

-- Plain successes: one guarded statement for all of them. What has a flag, came too late or is not
-- there is left to `settle`, which takes what was written here for a repeat and lets it pass.
CREATE FUNCTION holdfast.complete(
    worker text, ids text[], attempts integer[], results bytea[], now bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    at bigint := holdfast.now_us(complete.now);
    me integer;
    written bigint;
BEGIN
    SELECT number INTO me FROM holdfast.worker WHERE id = complete.worker;
    WITH ended AS (
        DELETE FROM holdfast.run AS r
        USING unnest(ids::uuid[], attempts, results) AS g (id, attempt, result)
        WHERE r.id = g.id AND r.attempt = g.attempt AND r.worker = me AND r.flags = 0
        RETURNING r.id, r.lane, r.attempt, r.started_at, g.result
    ), kept AS (
        INSERT INTO holdfast.done (id, finished_at, started_at, state, attempt, worker, flags, ended, result)
        SELECT ended.id, at, ended.started_at, 'completed', ended.attempt, me, 0, 'completed', ended.result
        FROM ended
    ), by_lane AS (
        SELECT ended.lane, count(*) AS n FROM ended GROUP BY ended.lane
    ), counted AS (
        INSERT INTO holdfast.tally (kind, key, n)
        SELECT 'running', by_lane.lane, -by_lane.n FROM by_lane
        UNION ALL SELECT 'completed', at / 1000000, sum(by_lane.n) FROM by_lane HAVING count(*) > 0
    )
    SELECT coalesce(sum(n), 0) INTO written FROM by_lane;
    RETURN written;
END $$;
