"""Starting dead letters again or forgetting them: first how many it would be, then once more by a
button that says so.

What is counted is pinned: by when the tasks ended, so that whatever gives up after the count is
left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from starlette.datastructures import QueryParams

from holdfast.core.query import Order, TaskFilter
from holdfast.dashboard.dead_groups import Group, grouped, pinned
from holdfast.dashboard.dead_search import FAILED, INSTANTS, TEXTS, DeadSearch, read_dead
from holdfast.dashboard.page import STEER, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.words import plural
from holdfast.server.problems import Refused
from holdfast.server.reach import Reach

page = Page("/dead-letters/confirm", "dead_confirm.html", "Dead letters", rule=STEER, is_live=False)

EXAMPLES: Final = 8
DONE: Final = {
    "replay": ("starts again", "start again"),
    "discard": ("is forgotten", "are forgotten"),
}
KNOWN: Final = {
    *("csrf", "action", "group", "pace", "minutes"),
    *(FAILED, *TEXTS, *INSTANTS),
}
"""What is misspelt must not mean everything."""
LEAST_PACE: Final = 0.01
LONGEST_SPREAD: Final = 7 * 24 * 60.0
"""Minutes."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What an action is about: `which` are the tasks, `group` is theirs if it is one's."""

    action: str
    search: DeadSearch
    which: TaskFilter
    group: Group | None


@page.read
async def read(view: View) -> Shown:
    return await _shown(view, view.query)


@page.action("/dead-letters/act", rule=STEER, back="/dead-letters")
async def act(form: Form) -> Done | Again:
    reach = await form.reach()
    if not form.words.get("finished_before"):
        raise Refused(422, "invalid_request", "count them first; nothing was changed")
    chosen = await _chosen(form, form.words)
    try:
        pace = await _pace(reach, chosen, form.words)
    except Refused as refused:
        shown = await _shown(form, form.words)
        return Again(shown={**shown, "problem": {"field": refused.field, "says": refused.detail}})
    done = await _do(reach, chosen, pace=pace, dry_run=False)
    says = (
        f"{plural(done, 'task')} {DONE[chosen.action][done != 1]}."
        if done
        else "Nothing fits any more."
    )
    return Done(to=form.url("/dead-letters", **chosen.search.kept), says=says, is_bad=not done)


async def _shown(view: View, words: QueryParams) -> Shown:
    reach = await view.reach()
    chosen = await _chosen(view, words)
    some = await reach.list(chosen.which, limit=EXAMPLES, after=None, order=Order.LAST_ENDED)
    return {
        "action": chosen.action,
        "count": await _do(reach, chosen, pace=None, dry_run=True),
        "group": chosen.group,
        "in_words": chosen.search.in_words,
        "with_failed": chosen.search.with_failed,
        "hidden": _hidden(chosen),
        "examples": (await view.service.view()).page(some)["tasks"],
        "back": view.url("/dead-letters", **chosen.search.kept),
        "pace": words.get("pace", ""),
        "minutes": words.get("minutes", ""),
        "problem": None,
    }


async def _chosen(view: View, words: QueryParams) -> Chosen:
    action = words.get("action", "")
    if action not in DONE:
        raise Refused(422, "invalid_request", "expected replay or discard", field="action")
    if unknown := set(words) - KNOWN:
        raise Refused(422, "invalid_request", f"there is no filter {min(unknown)[:40]!r}")
    search = read_dead(words)
    which = search.which
    if which.finished_before is None:
        which = replace(which, finished_before=await (await view.verbs()).now())
    if not (key := words.get("group")):
        return Chosen(action=action, search=search, which=which, group=None)
    group = (await grouped(await view.reach(), which)).find(key)
    ids = tuple(group.ids) if group else ()
    which = replace(pinned(which, group) if group else which, ids=ids)
    return Chosen(action=action, search=search, which=which, group=group)


def _hidden(chosen: Chosen) -> dict[str, str]:
    """The fields of the form: what was chosen, pinned."""
    which = chosen.which
    fields = {name: text for name, text in chosen.search.pairs if name in TEXTS}
    fields |= {"action": chosen.action}
    fields |= {"group": chosen.group.key} if chosen.group else {}
    fields |= {FAILED: "yes"} if chosen.search.with_failed else {}
    for name in INSTANTS:
        if at := getattr(which, name):
            fields[name] = at.isoformat()
    return fields


async def _do(reach: Reach, chosen: Chosen, *, pace: float | None, dry_run: bool) -> int:
    if chosen.action == "discard":
        return await reach.discard(chosen.which, dry_run=dry_run)
    return await reach.replay(chosen.which, pace=pace, dry_run=dry_run)


async def _pace(reach: Reach, chosen: Chosen, words: QueryParams) -> float | None:
    """Tasks a second; None for as fast as workers take them."""
    pace, minutes = words.get("pace", "").strip(), words.get("minutes", "").strip()
    if chosen.action != "replay" or not (pace or minutes):
        return None
    if pace and minutes:
        raise _wrong("pace", "give a pace or a time, not both")
    if pace:
        return _number("pace", pace, LEAST_PACE, 1e6, "tasks a second, such as 5")
    spread = _number("minutes", minutes, 0.1, LONGEST_SPREAD, "minutes, such as 10")
    count = await _do(reach, chosen, pace=None, dry_run=True)
    return min(max(count / (spread * 60), 1e-5), 1e6)


def _number(field: str, text: str, least: float, most: float, what: str) -> float:
    try:
        value = float(text) if text.isascii() else 0.0
    except ValueError:
        value = 0.0
    if not least <= value <= most:
        raise _wrong(field, f"expected {what}, got {text[:40]!r}; nothing was changed")
    return value


def _wrong(field: str, says: str) -> Refused:
    return Refused(422, "invalid_request", says, field=field)
