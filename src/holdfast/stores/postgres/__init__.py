"""Keeps tasks in PostgreSQL (`postgresql://…`): see `store.py`, and `migrations/` for the tables."""
