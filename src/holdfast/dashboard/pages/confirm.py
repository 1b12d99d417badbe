"""Acting on many tasks: first how many it would be, then once more by a button that says so.

What matches is pinned to the moment of the count: a task that is submitted after it was counted is
left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import QueryParams

from holdfast.core.lifecycle import REQUEUEABLE, TERMINAL, UNFINISHED
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.dashboard.page import STEER, Done, Form, Page, Shown, View
from holdfast.dashboard.task_search import Search, in_words, read_search
from holdfast.dashboard.words import plural
from holdfast.filters import dead_unless_told, read_id
from holdfast.server.problems import Refused
from holdfast.server.reach import Reach

page = Page("/tasks/confirm", "confirm.html", "Confirm", rule=STEER, is_live=False)

MOST_IDS: Final = 200
MOST_COUNTED: Final = 20_000
"""To count a million takes a second: that there are more than this is enough to stop and think."""
EXAMPLES: Final = 8
OURS: Final = frozenset({"action", "all", "ids", "csrf", "pace", "list"})
"""Words of the forms here; all others are filters."""


class Verb(NamedTuple):
    """An action in words; only tasks in these states fit."""

    title: str
    done: str
    explains: str
    states: frozenset[State]


VERBS: Final = {
    "cancel": Verb(
        "Cancel",
        "cancelled",
        "What has not started ends now; what runs is asked to stop.",
        UNFINISHED,
    ),
    "retry": Verb(
        "Retry",
        "started again",
        "What has ended starts anew; what waits for its time starts now.",
        REQUEUEABLE,
    ),
    "discard": Verb(
        "Discard", "discarded", "They are forgotten for good, with their history.", TERMINAL
    ),
}


class Chosen(NamedTuple):
    """What an action is about: some tasks by their ids, or all that match."""

    action: str
    ids: Sequence[TaskId]
    search: Search
    is_all: bool


@page.read
async def read(view: View) -> Shown:
    chosen = _read(view.query)
    reach = await view.reach()
    now = await (await view.verbs()).now()
    which = _which(chosen, chosen.search.which(now))
    some = await reach.list(which, limit=EXAMPLES, after=None, order=Order.NEWEST)
    if chosen.is_all and which.created_before is None:
        which = replace(which, created_before=now)
    count = await _count(reach, chosen.action, which)
    shown = await view.service.view()
    return {
        "verb": VERBS[chosen.action],
        "action": chosen.action,
        "count": count,
        "many": many(count),
        "is_all": chosen.is_all,
        "ids": chosen.ids,
        "filters": _pinned(chosen, which),
        "filters_in_words": in_words(chosen.search.filters) if chosen.is_all else [],
        "examples": shown.page(some)["tasks"],
        "list": urlencode(chosen.search.filters),
        "back": _list(view, urlencode(chosen.search.filters)),
    }


@page.action("/tasks/actions", rule=STEER, back="/tasks")
async def act(form: Form) -> Done:
    chosen = _read(form.words)
    now = await (await form.verbs()).now()
    which = _which(chosen, chosen.search.which(now))
    pace = _pace(form.words.get("pace", "")) if chosen.action == "retry" else None
    done = await _act(await form.reach(), chosen.action, which, pace=pace)
    verb = VERBS[chosen.action]
    says = f"{plural(done, 'task')} {verb.done}." if done else "No task was changed: none fits now."
    back = _list(form, urlencode(parse_qsl(form.words.get("list", ""))))
    return Done(to=back, says=says, is_bad=not done)


def _read(words: QueryParams) -> Chosen:
    action, is_all = words.get("action", ""), words.get("all") == "yes"
    if action not in VERBS:
        raise Refused(422, "invalid_request", "expected cancel, retry or discard", field="action")
    filters = [pair for pair in words.multi_items() if pair[0] not in OURS]
    search = read_search(QueryParams(filters))
    ids = words.getlist("ids")
    if not is_all and not 1 <= len(ids) <= MOST_IDS:
        raise Refused(422, "invalid_request", f"choose 1 to {MOST_IDS} tasks first", field="ids")
    if is_all and not search.is_filtered:
        raise Refused(
            422,
            "invalid_request",
            "this would be every task there is: filter the list first, by a state or a queue",
        )
    return Chosen(action, tuple(map(read_id, ids)), search, is_all)


def _which(chosen: Chosen, matching: TaskFilter) -> TaskFilter:
    return matching if chosen.is_all else TaskFilter(ids=tuple(chosen.ids))


async def _act(reach: Reach, action: str, which: TaskFilter, *, pace: float | None = None) -> int:
    match action:
        case "cancel":
            return await reach.cancel_many(which, dry_run=False)
        case "discard":
            return await reach.discard(which, dry_run=False)
        case _:
            return await reach.replay(which, pace=pace, dry_run=False)


async def _count(reach: Reach, action: str, which: TaskFilter) -> int:
    """How many it would be about."""
    meant = which if action == "cancel" else dead_unless_told(which)
    fit = VERBS[action].states
    states = fit if meant.states is None else fit & meant.states
    return await reach.number(replace(meant, states=states), limit=MOST_COUNTED + 1)


def many(count: int) -> str:
    """So many tasks, in words; no further than they were counted."""
    told = f"more than {MOST_COUNTED:,} tasks"
    return told if count > MOST_COUNTED else plural(count, "task")


def _pace(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        pace = float(text)
    except ValueError:
        pace = 0.0
    if not 0.01 <= pace <= 1e6:
        raise Refused(422, "invalid_request", "expected tasks a second, such as 5", field="pace")
    return pace


def _pinned(chosen: Chosen, which: TaskFilter) -> list[tuple[str, str]]:
    """The filters for the form, with the moment of the count in them."""
    if not chosen.is_all:
        return []
    pairs = [(n, t) for n, t in chosen.search.filters if n not in ("within", "created_before")]
    for name in ("created_after", "created_before"):
        at = getattr(which, name)
        if at is not None and all(name != given for given, _ in pairs):
            pairs.append((name, at.isoformat()))
    return pairs


def _list(view: View, query: str) -> str:
    """The list that somebody came from."""
    return view.url("/tasks") + (f"?{query}" if query else "")
