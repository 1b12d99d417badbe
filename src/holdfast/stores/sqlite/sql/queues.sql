-- name: lanes
SELECT id, queue, requires, priority FROM lane;

-- name: add_lane
INSERT INTO lane (queue, requires, priority) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: lane_id
SELECT id FROM lane WHERE queue = ? AND requires = ? AND priority = ?;

-- name: paused
SELECT queue FROM paused_queue ORDER BY queue;

-- name: pause
INSERT INTO paused_queue (queue) VALUES (?) ON CONFLICT DO NOTHING;

-- name: resume
DELETE FROM paused_queue WHERE queue = ?;
