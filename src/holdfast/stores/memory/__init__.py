"""`memory://`: for tests. `store.py` reads like the port, `places.py` holds the one hard part."""

from holdfast.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
