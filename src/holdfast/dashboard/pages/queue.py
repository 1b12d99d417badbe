"""One queue: what is in it, what waiting makes of that, who serves it, and what limits it."""

from __future__ import annotations

import shlex
from typing import Final

from holdfast.client import Client
from holdfast.core.task import Priority
from holdfast.dashboard.capacities import change
from holdfast.dashboard.commands import curl
from holdfast.dashboard.page import READ_ALL, STEER_ALL, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.queues import row_of, what_waiting_does
from holdfast.definitions.readers import read_name
from holdfast.errors import InvalidOption
from holdfast.server.problems import Refused
from holdfast.views import effective_depths

page = Page("/queues/{queue:text}", "queue.html", "Queue", rule=READ_ALL)

ONE: Final = "/queues/{queue}"
LIST: Final = "list"
"""Where a button was pressed, if that was not here."""


@page.read
async def read(view: View) -> Shown:
    return await _shown(view)


async def _shown(view: View) -> Shown:
    client, queue = await view.verbs(), _name(view)
    numbers = await view.service.gauge.numbers(client)
    row = row_of(queue, numbers, view.trends, client.settings.open_queues)
    limits = await client.limits_of_queue(queue)
    verb = "resume" if row.queue.paused else "pause"
    return {
        "title": f"Queue {queue}",
        "name": queue,
        "row": row,
        "worth": await effective_depths(client, [row.queue], queue),
        "priorities": list(Priority),
        "aging": what_waiting_does(client.settings.aging),
        "is_known": not row.is_empty or bool(row.servers) or await client.knows_queue(queue),
        "limits": limits.limits,
        "more_limits": limits.next is not None,
        "settable": [each.name for each in limits.limits if each.state is None],
        "may_steer": view.may(STEER_ALL),
        "start": f"holdfast worker module:app -q {shlex.quote(queue)}",
        "curl": curl(view, "POST", f"/api/v1/queues/{{}}/{verb}", queue),
        "given": {},
        "problem": "",
    }


@page.action("/queues/{queue:text}/pause", rule=STEER_ALL, back=ONE)
async def pause(form: Form) -> Done:
    client, queue = await form.verbs(), _name(form)
    changed = await client.pause(queue)
    says = "is paused. What runs goes on." if changed else "was paused already."
    return _back(form, queue, says)


@page.action("/queues/{queue:text}/resume", rule=STEER_ALL, back=ONE)
async def resume(form: Form) -> Done:
    client, queue = await form.verbs(), _name(form)
    changed = await client.resume(queue)
    return _back(form, queue, "goes on." if changed else "was not paused.")


@page.action("/queues/{queue:text}/limits", rule=STEER_ALL, back=ONE)
async def set_limit(form: Form) -> Done | Again:
    client, queue = await form.verbs(), _name(form)
    name, text = form.words.get("gate", ""), form.words.get("capacity", "")
    try:
        says = await change(client, await _of_queue(client, queue, name), text)
    except Refused as refused:
        shown = await _shown(form)
        return Again(shown={**shown, "given": form.words, "problem": refused.detail, "live": None})
    return Done(to=form.url(f"/queues/{queue}"), says=says)


async def _of_queue(client: Client, queue: str, name: str) -> str:
    """The name of one of this queue's limits."""
    found = await client.limits_of_queue(queue)
    if all(name != each.name for each in found.limits):
        said = "choose one of the limits of this queue; nothing was changed"
        raise Refused(422, "invalid_request", said, field="gate")
    return name


def _back(form: Form, queue: str, says: str) -> Done:
    is_list = form.words.get("from") == LIST
    path = "/queues" if is_list else f"/queues/{queue}"
    return Done(to=form.url(path), says=f"Queue {queue} {says}")


def _name(view: View) -> str:
    try:
        return read_name("queue", view.params["queue"])
    except InvalidOption as error:
        raise Refused(404, "queue_not_found", f"no queue can have this name: {error}") from None
