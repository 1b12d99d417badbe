"""Queues: how deep each is, who serves it, and holding it up."""

from __future__ import annotations

from typing import Final

from holdfast.core.task import Priority
from holdfast.dashboard.page import READ_ALL, STEER_ALL, Page, Shown, View
from holdfast.dashboard.queues import rows_of, what_waiting_does

page = Page("/queues", "queues.html", "Queues", rule=READ_ALL)

MOST: Final = 200


@page.read
async def read(view: View) -> Shown:
    client = await view.verbs()
    numbers = await view.service.gauge.numbers(client)
    rows = rows_of(numbers, view.trends, client.settings.open_queues)
    wanted = view.query.get("q", "").strip()
    found = [row for row in rows if wanted.casefold() in row.queue.queue.casefold()]
    return {
        "wanted": wanted,
        "rows": found[:MOST],
        "left_out": max(0, len(found) - MOST),
        "is_searchable": len(rows) > 10 or bool(wanted),
        "priorities": list(Priority),
        "aging": what_waiting_does(client.settings.aging),
        "may_steer": view.may(STEER_ALL),
    }
