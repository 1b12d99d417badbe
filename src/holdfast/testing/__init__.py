"""For testing your own tasks, and for proving your own store.

`MemoryApp` and `in_memory(app)` run tasks without a worker; `FakeClock` moves time.
`holdfast.testing.suites` holds the promises that every store must keep.

Names are imported when they are first used: pytest loads the plugin in here on every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.app import InMemory, MemoryApp, in_memory
    from holdfast.testing.clock import FakeClock
    from holdfast.testing.drain import Ran

_HOME_OF = {
    "FakeClock": "clock",
    "InMemory": "app",
    "MemoryApp": "app",
    "Ran": "drain",
    "in_memory": "app",
}

__all__ = ["FakeClock", "InMemory", "MemoryApp", "Ran", "in_memory"]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
