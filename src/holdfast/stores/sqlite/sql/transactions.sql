-- name: holds_lease
SELECT 1 FROM task WHERE id = ? AND attempt = ? AND worker_id = ? AND place = 3;

-- name: ended
-- Of the attempt if it was the task's last; an earlier one did not complete the task.
SELECT ended FROM task WHERE id = ? AND attempt = ? AND worker_id = ? AND place = 4;

-- name: savepoint
SAVEPOINT holdfast_add;

-- name: back_to_savepoint
ROLLBACK TO holdfast_add;

-- name: release_savepoint
RELEASE holdfast_add;

-- name: files
PRAGMA database_list;
