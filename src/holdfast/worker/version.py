"""Which Holdfast this is."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The installed version, or `unknown` in a tree that was never installed."""
    try:
        return metadata.version("holdfast")
    except metadata.PackageNotFoundError:
        return "unknown"
