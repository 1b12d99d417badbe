"""Which dead letters somebody looks at, as it stands in an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.datastructures import QueryParams

from holdfast.core.query import TaskFilter
from holdfast.core.task import Json, State
from holdfast.dashboard.task_search import Search, in_words, read_search
from holdfast.server.filters import filter_of

TEXTS: Final = {"task_type": "Task", "queue": "Queue", "error_type": "Error"}
INSTANTS: Final = ("finished_after", "finished_before")
FAILED: Final = "failed"
"""A word of ours: failed tasks too, which a retry could not have helped."""


@dataclass(frozen=True, kw_only=True)
class DeadSearch:
    """Filters that somebody chose. `pairs` are as in the address."""

    search: Search
    pairs: list[tuple[str, str]]
    with_failed: bool

    @property
    def which(self) -> TaskFilter:
        return filter_of(dict(self.search.words))

    @property
    def kept(self) -> dict[str, str]:
        """For links: which, without when."""
        kept = {name: text for name, text in self.pairs if name in TEXTS}
        return kept | ({FAILED: "yes"} if self.with_failed else {})

    @property
    def as_filter(self) -> dict[str, Json]:
        """In the words of the API's body."""
        return {name: text for name, text in self.pairs if name in TEXTS}

    @property
    def in_words(self) -> list[str]:
        return in_words([pair for pair in self.pairs if pair[0] in TEXTS])


def read_dead(words: QueryParams) -> DeadSearch:
    """`Refused` (422) for what the API would refuse."""
    known = {*TEXTS, *INSTANTS}
    pairs = [(name, text) for name, text in words.multi_items() if name in known and text.strip()]
    with_failed = words.get(FAILED) == "yes"
    states = [State.DEAD_LETTER, State.FAILED] if with_failed else [State.DEAD_LETTER]
    search = read_search(QueryParams([*pairs, *(("status", each.value) for each in states)]))
    return DeadSearch(search=search, pairs=pairs, with_failed=with_failed)
