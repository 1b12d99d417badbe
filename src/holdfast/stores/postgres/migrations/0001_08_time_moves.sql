-- What time has moved: due tasks stand in line, expired ones end. No timer does it: every claim does,
-- whoever claims, in slices.

-- Promote what is due, in every lane; answers in how many microseconds the next task of these lanes
-- will be (0: at once, because another claim is about to promote some).
CREATE FUNCTION holdfast.promote(eligible integer[], at bigint) RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    next_due bigint;
BEGIN
    IF EXISTS (
        SELECT 1 FROM holdfast.lane
        WHERE EXISTS (SELECT 1 FROM holdfast.waiting AS w WHERE w.lane = lane.id AND w.due_at <= at)
    ) THEN
        PERFORM holdfast.promote_due(at);
    END IF;
    SELECT min(first.due_at) INTO next_due
    FROM unnest(eligible) AS e (lane)
    CROSS JOIN LATERAL (
        SELECT w.due_at FROM holdfast.waiting AS w WHERE w.lane = e.lane ORDER BY w.due_at LIMIT 1
    ) AS first;
    RETURN greatest(next_due - at, 0);
END $$;
