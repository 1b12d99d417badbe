-- name: lanes
SELECT id, queue, requires, priority FROM lane;

-- name: add_lane
INSERT INTO lane (queue, requires, priority) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: lane_id
SELECT id FROM lane WHERE queue = ? AND requires = ? AND priority = ?;

-- name: paused
SELECT key FROM record WHERE kind = 'pause';
