"""What wakes a worker on PostgreSQL: Redis, LISTEN/NOTIFY, or nothing but its own looking."""
