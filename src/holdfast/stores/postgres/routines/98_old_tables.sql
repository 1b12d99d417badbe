-- What nothing reads any more, now that all views are as they are here.
DROP TABLE IF EXISTS holdfast.blocked_by_lock;
