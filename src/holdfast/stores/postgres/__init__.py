"""Keeps tasks in PostgreSQL (`postgresql://…`): `store.py`; the tables are in `migrations/`."""
