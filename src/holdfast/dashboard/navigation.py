"""The ways through the dashboard, in the order of the menu. One that has no page yet is left out,
and so is one that a token may not take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from holdfast.dashboard.page import Page, View


class Way(NamedTuple):
    """An entry of the menu."""

    path: str
    title: str


WAYS: Final = (
    Way("/", "Overview"),
    Way("/tasks", "Tasks"),
    Way("/dead-letters", "Dead letters"),
    Way("/queues", "Queues"),
    Way("/gates", "Gates"),
    Way("/workers", "Workers"),
    Way("/schedules", "Schedules"),
    Way("/executions", "Executions"),
    Way("/usage", "Usage"),
    Way("/settings", "Settings"),
)


def ways(view: View, pages: Mapping[str, Page]) -> Iterator[Way]:
    """Those that this token may go."""
    for way in WAYS:
        page = pages.get(way.path)
        if page is not None and view.may(page.rule):
            yield way


def current(path: str) -> str:
    """The way that a page's path belongs to: `/tasks/{task_id}` to `/tasks`."""
    within = [way.path for way in WAYS if way.path != "/" and f"{path}/".startswith(f"{way.path}/")]
    return within[0] if within else path
