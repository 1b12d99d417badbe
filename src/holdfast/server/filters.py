"""From the words of a query or a body to the filter that the client understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.core.query import TaskFilter
from holdfast.filters import where
from holdfast.server.instants import read_instant

_NAMES: Final = {
    "status": "state",
    "task_type": "name",
    "task_type_prefix": "name_prefix",
    "ids": "ids",
    **{
        word: word
        for word in (
            "queue",
            "priority",
            "tag",
            "owner",
            "worker_id",
            "lock",
            "unique_key",
            "idempotency_key",
            "error_type",
            "parent_id",
        )
    },
}


def filter_of(given: Mapping[str, Any]) -> TaskFilter:
    """The filter that these words, whose form was checked, make; other words are passed over."""
    words: dict[str, Any] = {ours: given[word] for word, ours in _NAMES.items() if word in given}
    for word in ("created_after", "created_before", "finished_after", "finished_before"):
        if word in given:
            words[word] = read_instant(word, given[word])
    return where(**words)
