-- name: places
-- Every task is in exactly one place.
SELECT t.id::text, count(p.place), coalesce(string_agg(p.place, ', '), 'none')
FROM holdfast.task AS t
LEFT JOIN (
    SELECT id, 'ready' AS place FROM holdfast.ready
    UNION ALL SELECT id, 'run' FROM holdfast.run
    UNION ALL SELECT id, 'waiting' FROM holdfast.waiting
    UNION ALL SELECT id, 'blocked' FROM holdfast.blocked
    UNION ALL SELECT id, 'done' FROM holdfast.done
) AS p ON p.id = t.id
GROUP BY t.id HAVING count(p.place) <> 1 LIMIT 20;

-- name: strangers
-- A place, a key or a piece of history that belongs to no task.
SELECT p.place, p.id::text
FROM (
    SELECT 'ready' AS place, id FROM holdfast.ready
    UNION ALL SELECT 'run', id FROM holdfast.run
    UNION ALL SELECT 'waiting', id FROM holdfast.waiting
    UNION ALL SELECT 'blocked', id FROM holdfast.blocked
    UNION ALL SELECT 'done', id FROM holdfast.done
    UNION ALL SELECT 'extra', id FROM holdfast.extra
    UNION ALL SELECT 'attempt', id FROM holdfast.attempt
    UNION ALL SELECT 'event', id FROM holdfast.event
    UNION ALL SELECT 'journal', id FROM holdfast.journal
    UNION ALL SELECT 'unique_key', id FROM holdfast.unique_key
    UNION ALL SELECT 'idempotency', id FROM holdfast.idempotency
    UNION ALL SELECT 'stop', s.id FROM holdfast.stop AS s
    WHERE NOT EXISTS (SELECT 1 FROM holdfast.run AS r WHERE r.id = s.id AND r.worker = s.worker)
    UNION ALL SELECT 'floor', r.id FROM holdfast.ready AS r
    JOIN holdfast.floor AS f ON f.lane = r.lane WHERE NOT r.late AND r.rank < f.active
) AS p
WHERE p.place IN ('stop', 'floor')
OR NOT EXISTS (SELECT 1 FROM holdfast.task AS t WHERE t.id = p.id) LIMIT 20;

-- name: flags
-- What the flags of an unfinished task say must be so.
SELECT p.id::text, p.flags
FROM (
    SELECT id, flags FROM holdfast.ready UNION ALL SELECT id, flags FROM holdfast.run
    UNION ALL SELECT id, flags FROM holdfast.waiting UNION ALL SELECT id, flags FROM holdfast.blocked
) AS p
JOIN holdfast.task AS t ON t.id = p.id
LEFT JOIN holdfast.extra AS e ON e.id = p.id
WHERE (p.flags & 1 <> 0) <> (t.lock_key IS NOT NULL)
OR (p.flags & 32 <> 0) <> (t.passes IS NOT NULL)
OR (p.flags & 128 <> 0) <> (t.counts IS NOT NULL)
OR (p.flags & 2 <> 0) <> (t.unique_key IS NOT NULL)
OR (p.flags & 4 <> 0) <> (e.id IS NOT NULL)
OR (p.flags & 8 <> 0) <> (t.expires_at IS NOT NULL AND NOT coalesce(e.has_no_expiry, false))
LIMIT 20;

-- name: unique_keys
-- The unique keys of unfinished tasks, and no others.
SELECT coalesce(u.id, t.id)::text
FROM (
    SELECT task.id, task.name, task.unique_key FROM holdfast.task
    WHERE task.unique_key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM holdfast.done AS d WHERE d.id = task.id)
) AS t
FULL JOIN holdfast.unique_key AS u ON u.name = t.name AND u.key = t.unique_key AND u.id = t.id
WHERE u.id IS NULL OR t.id IS NULL LIMIT 20;

-- name: expiries
-- What can expire is known to, and nothing else is.
SELECT coalesce(e.id, p.id)::text
FROM (
    SELECT id, expires_at FROM holdfast.ready WHERE expires_at IS NOT NULL
    UNION ALL SELECT id, expires_at FROM holdfast.waiting WHERE expires_at IS NOT NULL
    UNION ALL SELECT id, expires_at FROM holdfast.blocked WHERE expires_at IS NOT NULL
) AS p
FULL JOIN holdfast.expiring AS e ON e.id = p.id AND e.expires_at = p.expires_at
WHERE e.id IS NULL OR p.id IS NULL LIMIT 20;

-- name: gates_held
-- What a gate says of who holds it, and who does: those behind it that are ready (also of rates), run,
-- or stand before a later gate.
SELECT coalesce(g.name, h.name), coalesce(g.held, 0), coalesce(h.n, 0), g.holder::text, h.first::text
FROM (SELECT * FROM holdfast.gate WHERE NOT starts_with(name, 'latch:')) AS g
FULL JOIN (
    SELECT p.name, count(*) AS n, min(h.id::text)::uuid AS first
    FROM (
        SELECT r.id, true AS is_ready, NULL::smallint AS passed FROM holdfast.ready AS r
        WHERE r.flags & 33 <> 0
        UNION ALL SELECT r.id, false, NULL FROM holdfast.run AS r WHERE r.flags & 33 <> 0
        UNION ALL SELECT b.id, true, b.passed FROM holdfast.blocked AS b WHERE b.passed > 0
    ) AS h
    JOIN holdfast.task AS t ON t.id = h.id
    CROSS JOIN LATERAL unnest(
        (holdfast.passes_of(t.passes, t.lock_key))[1:coalesce(h.passed, 1000)]
    ) AS p (name)
    WHERE NOT starts_with(p.name, 'latch:') AND (h.is_ready OR NOT starts_with(p.name, 'rate:'))
    GROUP BY p.name
) AS h ON h.name = g.name
WHERE coalesce(g.held, 0) <> coalesce(h.n, 0)
OR starts_with(g.name, 'lock:') AND g.holder IS DISTINCT FROM h.first
LIMIT 20;

-- name: gates_open
-- Somebody stands before a gate that would let him pass (and that no claim is about to look at), or
-- behind a lock's holder that has not started; nobody has anything to do with a gate.
SELECT b.gate, 'somebody stands before it, and it has room' AS problem
FROM (SELECT DISTINCT gate FROM holdfast.blocked) AS b
LEFT JOIN holdfast.gate AS g ON g.name = b.gate
WHERE g.name IS NULL
OR g.look_at IS NULL AND CASE
    WHEN starts_with(g.name, 'latch:') THEN g.opened_at IS NOT NULL
    ELSE coalesce(g.pinned, g.capacity) > g.held AND g.starts = '{}'
END
UNION ALL
SELECT g.name, 'its holder has not started and stands behind another'
FROM holdfast.gate AS g
JOIN holdfast.ready AS r
ON r.lane = g.lane AND r.late IN (false, true) AND r.rank = g.rank AND r.id = g.holder
JOIN holdfast.task AS t ON t.id = r.id AND coalesce(t.passes[cardinality(t.passes)], g.name) = g.name
WHERE EXISTS (
    SELECT 1 FROM holdfast.blocked AS b WHERE b.gate = g.name AND (b.rank, b.id) < (g.rank, g.holder)
)
UNION ALL
SELECT g.name, 'nobody holds it or stands before it'
FROM holdfast.gate AS g
WHERE NOT starts_with(g.name, 'latch:') AND g.held = 0 AND g.pinned IS NULL AND g.starts = '{}'
AND NOT EXISTS (SELECT 1 FROM holdfast.blocked AS b WHERE b.gate = g.name)
UNION ALL
SELECT g.name, 'its task is unfinished and will not open it'
FROM holdfast.gate AS g
JOIN (
    SELECT id, flags FROM holdfast.ready UNION ALL SELECT id, flags FROM holdfast.run
    UNION ALL SELECT id, flags FROM holdfast.waiting UNION ALL SELECT id, flags FROM holdfast.blocked
) AS p ON g.name = 'latch:' || p.id
WHERE p.flags & 64 = 0
LIMIT 20;

-- name: counts
-- What the tally says and what there is.
SELECT told.kind, told.key, coalesce(told.n, 0)::bigint, coalesce(told.found, 0)::bigint
FROM (
    SELECT kind, key, sum(n) FILTER (WHERE is_told) AS n, sum(n) FILTER (WHERE NOT is_told) AS found
    FROM (
        SELECT
            kind, n, true AS is_told,
            CASE WHEN kind IN ('completed', 'failed', 'cancelled', 'dead_letter') THEN 0
            ELSE key END AS key
        FROM holdfast.tally WHERE kind <> 'refused'
        UNION ALL SELECT 'ready', count(*), false, lane FROM holdfast.ready GROUP BY lane
        UNION ALL SELECT 'running', count(*), false, lane FROM holdfast.run GROUP BY lane
        UNION ALL SELECT 'waiting', count(*), false, lane FROM holdfast.waiting GROUP BY lane
        UNION ALL SELECT 'blocked', count(*), false, lane FROM holdfast.blocked GROUP BY lane
        UNION ALL SELECT 'retrying', count(*), false, 0 FROM holdfast.waiting WHERE retrying
        UNION ALL SELECT state::text, count(*), false, 0 FROM holdfast.done GROUP BY state
    ) AS both_sides
    GROUP BY kind, key
) AS told
WHERE coalesce(told.n, 0) <> coalesce(told.found, 0) LIMIT 20;

-- name: settings
SELECT
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('full_page_writes') AS full_page_writes;

-- name: pinned
-- Who keeps dead row versions from being removed, or locks, and for how long.
SELECT pid, coalesce(application_name, '') AS name, coalesce(state, 'state not shown') AS state,
    extract(epoch FROM clock_timestamp() - xact_start)::double precision AS seconds
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL OR starts_with(state, 'idle in transaction'))
AND xact_start < clock_timestamp() - $1::double precision * interval '1 second'
ORDER BY xact_start LIMIT 5;

-- name: prepared
-- Transactions prepared for a second phase that nobody began.
SELECT gid, extract(epoch FROM clock_timestamp() - prepared)::double precision AS seconds
FROM pg_prepared_xacts
WHERE database = current_database()
AND prepared < clock_timestamp() - $1::double precision * interval '1 second'
ORDER BY prepared LIMIT 5;

-- name: burdens
-- What keeps dead rows in the tables that claims read, and how many there are by the server's count.
SELECT
    coalesce((
        SELECT extract(epoch FROM clock_timestamp() - min(xact_start))::double precision
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
    ), 0)::double precision AS oldest_transaction,
    coalesce((
        SELECT sum(pg_stat_get_dead_tuples(c.oid))
        FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
        WHERE s.nspname = 'holdfast' AND c.relname IN ('ready', 'run', 'waiting', 'blocked')
    ), 0)::bigint AS dead_rows;

-- name: slots
-- A replication slot that nobody reads pins as well, and fills the disk.
SELECT slot_name::text, keeps_rows, kept
FROM (
    SELECT slot_name, xmin IS NOT NULL AS keeps_rows,
        coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::double precision AS kept
    FROM pg_replication_slots WHERE NOT active
) AS unread
WHERE keeps_rows OR kept > $1::bigint LIMIT 5;

-- name: horizon
-- Whoever holds back the removal of dead rows the furthest.
SELECT kind, name, age
FROM (
    SELECT 'the transaction of pid' AS kind, pid::text AS name, age(backend_xmin) AS age
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
    UNION ALL
    SELECT 'prepared transaction', gid, age(transaction) FROM pg_prepared_xacts
    UNION ALL
    SELECT 'replication slot', slot_name::text, age(xmin)
    FROM pg_replication_slots WHERE xmin IS NOT NULL
    UNION ALL
    SELECT 'standby', application_name, age(backend_xmin)
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
) AS pins
WHERE age > $1::integer ORDER BY age DESC LIMIT 1;

-- name: dead_rows
-- Hot tables with far more dead rows than living ones.
SELECT relname::text, n_dead_tup, n_live_tup FROM pg_stat_user_tables
WHERE schemaname = 'holdfast' AND relname IN ('ready', 'run', 'waiting', 'blocked', 'gate')
AND n_dead_tup > $1::bigint AND n_dead_tup > 20 * n_live_tup;

-- name: indexes
SELECT c.relname::text, i.indisvalid AND i.indisready
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'holdfast';

-- name: missing_partitions
SELECT holdfast.missing_partitions();
