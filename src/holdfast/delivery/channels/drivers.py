"""Whether what a channel needs is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def without_driver(*modules: str) -> str | None:
    """What to install, if one of these cannot be imported."""
    for module in modules:
        try:
            found = find_spec(module) is not None
        except ImportError:
            found = False
        if not found:
            return f"install `holdfast[delivery]` ({module} is missing)"
    return None
