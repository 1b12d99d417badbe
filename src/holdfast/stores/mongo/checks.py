"""Looks for what should not be (`doctor`)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.schema import missing_indexes


async def problems(db: Collections, *, has_own_clock: bool) -> Sequence[str]:
    """Everything found, as sentences. Walks all tasks."""
    return [
        f"index {name} is missing: run `holdfast migrate`" for name in await missing_indexes(db)
    ]
