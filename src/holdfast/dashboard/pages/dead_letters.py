"""Dead letters: what gave up, grouped by why, to be started again or forgotten."""

from __future__ import annotations

from holdfast.core.task import State
from holdfast.dashboard.commands import curl
from holdfast.dashboard.dead_groups import MOST, Grouped, grouped
from holdfast.dashboard.dead_search import FAILED, TEXTS, DeadSearch, read_dead
from holdfast.dashboard.page import READ, STEER, Page, Shown, View
from holdfast.errors import HoldfastError
from holdfast.server.problems import Refused, refusal_of

page = Page("/dead-letters", "dead_letters.html", "Dead letters", rule=READ)

ACTIONS = ("replay", "discard")


@page.read
async def read(view: View) -> Shown:
    shown: Shown = {
        "texts": TEXTS,
        "given": view.query,
        "with_failed": view.query.get(FAILED) == "yes",
        "most": MOST,
        "may_act": view.may(STEER),
        "problem": None,
        "found": None,
        "search": None,
        "curls": {},
        "total": None,
    }
    try:
        search = read_dead(view.query)
        found = await grouped(await view.reach(), search.which)
    except (Refused, HoldfastError) as error:
        refused = error if isinstance(error, Refused) else refusal_of(error)
        if refused.status >= 500:
            raise
        problem = {"field": refused.field, "says": refused.detail}
        return shown | {"problem": problem, "status": refused.status}
    return shown | {
        "found": found,
        "search": search,
        "total": await _total(view, search, found),
        "curls": {} if search.with_failed else _curls(view, search),
    }


async def _total(view: View, search: DeadSearch, found: Grouped) -> int | None:
    """How many there are, if that is known without counting them."""
    if not found.has_more:
        return found.looked_at
    if search.pairs or view.token.bounds.is_narrow:
        return None
    states = (await view.service.gauge.numbers(await view.verbs())).stats.states
    return states[State.DEAD_LETTER] + (states[State.FAILED] if search.with_failed else 0)


def _curls(view: View, search: DeadSearch) -> dict[str, str]:
    body = {"filter": search.as_filter}
    paced = {**body, "pace": 5.0}
    return {
        "Replay them, five a second": curl(view, "POST", "/api/v1/dead-letters/replay", body=paced),
        "Count what a discard would forget": curl(
            view, "POST", "/api/v1/dead-letters/discard", body={**body, "dry_run": True}
        ),
    }
