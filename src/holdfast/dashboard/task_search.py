"""The filters of a list of tasks as they stand in an address: read for the API's own filter, shown
in the form, and kept in links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast

from starlette.datastructures import QueryParams

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Priority, State
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import TaskSearch
from holdfast.server.problems import Refused
from holdfast.server.shape import Shape

SEARCH: Final = Shape(TaskSearch)
WITHIN: Final = "within"
"""A word of ours: created within the last so many minutes."""
SPANS: Final = {
    "15m": ("15 minutes", timedelta(minutes=15)),
    "1h": ("hour", timedelta(hours=1)),
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
}
PAGE: Final = 50
MOST: Final = 200
STATES: Final = tuple(State)
SORTS: Final = {
    "-created_at": "newest first",
    "created_at": "oldest first",
    "-finished_at": "last ended first",
    "finished_at": "first ended first",
}
TEXTS: Final = {
    "task_type": "Task",
    "queue": "Queue",
    "tag": "Tag",
    "owner": "Owner",
    "error_type": "Error",
    "worker_id": "Worker",
    "schedule": "Schedule",
    "lock": "Lock",
    "unique_key": "Unique key",
    "idempotency_key": "Idempotency key",
    "task_type_prefix": "Task begins with",
    "parent_id": "Parent",
}
"""Words with free text, and what they are called. The first ones are asked for most."""
IN_FRONT: Final = 4
INSTANTS: Final = {
    "created_after": "Created from",
    "created_before": "Created before",
    "finished_after": "Ended from",
    "finished_before": "Ended before",
}
PRIORITIES: Final = tuple(Priority)
NOT_FILTERS: Final = frozenset({"cursor", "limit", "sort", "traceback"})

_LOCAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII).fullmatch


@dataclass(frozen=True, kw_only=True)
class Search:
    """A list of tasks that somebody asked for. `words` are those of the API."""

    words: TaskSearch
    within: str | None = None
    given: QueryParams = field(default_factory=QueryParams)

    def which(self, now: datetime) -> TaskFilter:
        """The API's filter."""
        words: dict[str, Any] = dict(self.words)
        if self.within is not None and "created_after" not in words:
            since = (now - SPANS[self.within][1]).replace(microsecond=0)
            words["created_after"] = since.isoformat()
        return filter_of(words)

    @property
    def order(self) -> Order:
        return Order(self.words.get("sort", Order.NEWEST))

    @property
    def limit(self) -> int:
        return min(self.words.get("limit", PAGE), MOST)

    @property
    def cursor(self) -> str | None:
        return self.words.get("cursor")

    @property
    def is_filtered(self) -> bool:
        return bool(self.filters)

    @property
    def filters(self) -> list[tuple[str, str]]:
        """The pairs of the address that say which tasks, without how they are listed."""
        return [pair for pair in self.given.multi_items() if pair[0] not in NOT_FILTERS]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The same, with the order."""
        return [pair for pair in self.given.multi_items() if pair[0] not in {"cursor", "limit"}]


def cleaned(query: QueryParams) -> QueryParams:
    """Without what a form sends empty, and with times in UTC as the form has them made whole."""
    return QueryParams(
        [(name, _instant(name, text)) for name, text in query.multi_items() if text.strip()]
    )


def read_search(query: QueryParams) -> Search:
    """`Refused` (422) for what the API would refuse."""
    given = cleaned(query)
    within = given.get(WITHIN)
    if within is not None and within not in SPANS:
        said = f"expected {', '.join(SPANS)}, got {within!r}"
        raise Refused(422, "invalid_request", said, field=WITHIN)
    ours = [pair for pair in given.multi_items() if pair[0] != WITHIN]
    words = SEARCH.read_query(QueryParams(ours))
    filter_of(words)
    return Search(words=words, within=within, given=given)


def in_words(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Filters for people: `Queue mail`."""
    names = cast("dict[str, str]", {**TEXTS, **INSTANTS, "status": "State", "priority": "Priority"})
    return [
        f"Created within the last {SPANS[text][0]}"
        if name == WITHIN and text in SPANS
        else f"{names.get(name, name)} {text.replace('_', ' ') if name == 'status' else text}"
        for name, text in pairs
    ]


def local(text: str) -> str:
    """An instant of the address as a field for local times shows it: in UTC."""
    return text[:-1] if text.endswith("Z") and _LOCAL(text[:-1]) else ""


def _instant(name: str, text: str) -> str:
    if name not in INSTANTS or not _LOCAL(text):
        return text
    return f"{text}Z" if text.count(":") == 2 else f"{text}:00Z"
