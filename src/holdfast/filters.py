"""Which tasks: the filter words of `list`, `count`, `cancel_many`, `replay` and `discard`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from holdfast.core.ids import is_task_id
from holdfast.core.keys import by_stored_key
from holdfast.core.lifecycle import OTHER_WORDS
from holdfast.core.query import TaskFilter
from holdfast.core.schedule_state import schedule_tag
from holdfast.core.task import Priority, State, TaskId, WorkerId
from holdfast.definitions import readers
from holdfast.definitions.handle import TaskRef
from holdfast.definitions.instants import read_instant
from holdfast.errors import AttemptTimeout, InvalidOption, TaskNotFound

MOST_PER_PAGE: Final = 1000


def page_size(limit: int) -> int:
    """How many a page may have."""
    if not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidOption("limit", f"expected 1 to {MOST_PER_PAGE}, got {limit}")
    return limit


class FilterKeywords(TypedDict, total=False):
    """Every word given must match. `state` may be several; other products' words are understood.
    `name` may be the end of the name of a task that the app knows: `mail` finds `shop.mail`.
    `schedule` finds the runs of one, by the tag that they have; so it goes with no other `tag`.

    The times are aware datetimes, or ISO text with an offset.
    """

    state: str | Collection[str] | None
    name: str | None
    name_prefix: str | None
    queue: str | None
    priority: str | Priority | None
    tag: str | None
    schedule: str | None
    owner: str | None
    worker_id: str | None
    lock: str | None
    unique_key: str | None
    idempotency_key: str | None
    error_type: str | None
    parent_id: TaskRef | None
    ids: Collection[TaskRef] | None
    created_after: datetime | str | None
    created_before: datetime | str | None
    finished_after: datetime | str | None
    finished_before: datetime | str | None


JSON_WORDS: Final = {
    "state": "status",
    "name": "task_type",
    "name_prefix": "task_type_prefix",
    "requires": "required_capabilities",
    "timeout": "timeout_seconds",
    "delay": "delay_seconds",
    "expires": "expires_at",
    "callback": "callback_url",
    "jitter": "jitter_seconds",
    "catch_up_window": "catch_up_window_seconds",
}
"""Filter words and options that are others in queries and bodies of the API."""


def where(**words: Unpack[FilterKeywords]) -> TaskFilter:
    """Make a filter: `where(state="dead_letter", name="shop.mail")`."""
    readers.refuse_unknown(words, FilterKeywords.__annotations__)
    given = {name: value for name, value in words.items() if value is not None}
    fields: dict[str, Any] = {
        name: _READERS.get(name, readers.read_key)(name, value) for name, value in given.items()
    }
    if "schedule" in fields:
        if "tag" in fields:
            raise InvalidOption("schedule", "give a schedule or a tag: its runs are found by one")
        fields["tag"] = schedule_tag(fields.pop("schedule"))
    if "state" in fields:
        fields["states"] = fields.pop("state")
        if _means_timeout(given["state"]):
            fields.setdefault("error_type", AttemptTimeout.__name__)
    return TaskFilter(**fields)


def chosen_by(
    which: TaskFilter | None, words: FilterKeywords, full_name: Callable[[str], str]
) -> TaskFilter:
    """The filter of a verb that takes one, or single words; as a store takes it."""
    if which is not None and words:
        raise InvalidOption(next(iter(words)), "give a filter or single words, not both")
    chosen = by_stored_key(where(**words) if which is None else which)
    if chosen.name is not None and (full := full_name(chosen.name)) != chosen.name:
        # Both: another app may have given a task just this name.
        both = frozenset({chosen.name, full})
        names = both if chosen.names is None else both & chosen.names
        return replace(chosen, name=None, names=names)
    return chosen


def dead_unless_told(which: TaskFilter) -> TaskFilter:
    """Dead letters, unless the filter says which states or tasks."""
    if which.states is None and which.ids is None:
        return replace(which, states=frozenset({State.DEAD_LETTER}))
    return which


def read_id(task: TaskRef) -> TaskId:
    """The id in a reference. What cannot be an id is a task that does not exist."""
    text = str(task).strip().lower()
    if not is_task_id(text):
        raise TaskNotFound(str(task))
    return TaskId(text)


def read_state(option: str, word: object) -> State:
    """Read a state; `pending`, `executing`, `dead` and the like are understood."""
    text = word.strip().lower() if isinstance(word, str) else ""
    if text in OTHER_WORDS:
        return OTHER_WORDS[text]
    words = [state.value for state in State]
    if text not in words:
        raise InvalidOption(
            option, f"expected {', '.join(words)}, got {word!r}.{readers.hint(word, words)}"
        )
    return State(text)


def _means_timeout(value: object) -> bool:
    """Elsewhere `timeout` is a state of its own; here it is how some dead letters came to be."""
    words = [str(word).strip().lower() for word in _many(value)]
    if "timeout" in words and set(words) != {"timeout"}:
        raise InvalidOption(
            "state", "'timeout' stands alone: it means the dead letters that ran out of time"
        )
    return "timeout" in words


def _many(value: object) -> Collection[object]:
    return value if isinstance(value, Collection) and not isinstance(value, str) else [value]


def _states(option: str, value: object) -> frozenset[State]:
    many = _many(value)
    if not many:
        raise InvalidOption(option, "expected at least one state, got none")
    return frozenset(read_state(option, word) for word in many)


def _ids(_: str, value: Any) -> tuple[TaskId, ...]:
    return tuple(read_id(task) for task in value)


_READERS: Mapping[str, Callable[[str, Any], object]] = {
    "state": _states,
    "priority": readers.read_priority,
    "worker_id": lambda option, value: WorkerId(readers.read_key(option, value)),
    "parent_id": lambda _, value: read_id(value),
    "ids": _ids,
    "created_after": read_instant,
    "created_before": read_instant,
    "finished_after": read_instant,
    "finished_before": read_instant,
}
