"""Tasks: found by anything the API can find them by, live, and acted on by the handful."""

from __future__ import annotations

from typing import Any, Final

from holdfast.dashboard import saved_views
from holdfast.dashboard.page import READ, STEER, Page, Shown, View
from holdfast.dashboard.task_search import (
    IN_FRONT,
    INSTANTS,
    PRIORITIES,
    SORTS,
    SPANS,
    STATES,
    TEXTS,
    Search,
    cleaned,
    in_words,
    local,
    read_search,
)
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.server.pages import read_page
from holdfast.server.problems import Refused, refusal_of

page = Page("/tasks", "tasks.html", "Tasks", rule=READ)

FORM: Final[Shown] = {
    "states": STATES,
    "priorities": PRIORITIES,
    "sorts": SORTS,
    "spans": SPANS,
    "instants": INSTANTS,
    "texts_in_front": dict(list(TEXTS.items())[:IN_FRONT]),
    "texts_behind": dict(list(TEXTS.items())[IN_FRONT:]),
    "local": local,
}


@page.read
async def read(view: View) -> Shown:
    shown: Shown = FORM | {
        "given": cleaned(view.query),
        "known_queues": await _known_queues(view),
        "views": await saved_views.views_of(await view.verbs(), view.token),
        "may_act": view.may(STEER),
        "problem": None,
        "tasks": [],
        "next": None,
        "search": None,
        "filters_in_words": [],
    }
    try:
        search = read_search(view.query)
        return shown | await _listed(view, search)
    except (Refused, HoldfastError) as error:
        return shown | _problem(error)


async def _listed(view: View, search: Search) -> Shown:
    client = await view.verbs()
    page_of_tasks = await read_page(
        await view.reach(),
        search.which(await client.now()),
        limit=search.limit,
        after=search.cursor,
        order=search.order,
    )
    found = (await view.service.view()).page(page_of_tasks)
    return {
        "search": search,
        "tasks": found["tasks"],
        "next": found["next"],
        "filters_in_words": in_words(search.filters),
    }


def _problem(error: Refused | HoldfastError) -> Shown:
    """What is wrong with the filters, beside the field that is to blame."""
    refused = error if isinstance(error, Refused) else refusal_of(error)
    if refused.status >= 500 or refused.status == 404:
        raise error
    if isinstance(error, InvalidOption) and error.option == "after":
        refused = Refused(409, refused.code, "This page belongs to a list in another order.")
    return {
        "problem": {"field": refused.field, "says": refused.detail},
        "status": refused.status,
    }


async def _known_queues(view: View) -> list[str]:
    """To choose from; those of others are nothing for a bound token."""
    if view.token.bounds.is_narrow:
        return sorted(view.token.bounds.queues or ())
    numbers: Any = await view.service.gauge.numbers(await view.verbs())
    return sorted(queue.queue for queue in numbers.stats.queues)[:200]
