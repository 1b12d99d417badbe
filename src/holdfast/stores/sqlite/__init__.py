"""`sqlite:///`: the embedded default. `store.py` reads like the port; `writer.py` is its heart."""

from holdfast.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
