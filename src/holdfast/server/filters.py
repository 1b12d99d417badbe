"""From the words of a query or a body to the filter that the client understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.core.query import TaskFilter
from holdfast.filters import JSON_WORDS, FilterKeywords, where
from holdfast.server.instants import read_instant
from holdfast.server.problems import Refused

_OURS: Final = {JSON_WORDS.get(word, word): word for word in FilterKeywords.__annotations__}
_INSTANTS: Final = {"created_after", "created_before", "finished_after", "finished_before"}


def filter_of(given: Mapping[str, Any]) -> TaskFilter:
    """The filter that these words, whose form was checked, make; other words are passed over."""
    if "schedule" in given and "tag" in given:
        # 409, not 422: each word is well formed.
        raise Refused(
            409,
            "conflicting_options",
            "give `schedule` or `tag`: the runs of a schedule are found by a tag",
            field="schedule",
        )
    words: dict[str, Any] = {
        _OURS[word]: read_instant(word, value) if word in _INSTANTS else value
        for word, value in given.items()
        if word in _OURS
    }
    return where(**words)
