"""Settings in force, what is kept for how long, and the versions of what is running."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Final

from holdfast.dashboard.page import ADMIN, READ_ALL, Page, Shown, View
from holdfast.dashboard.words import duration
from holdfast.setting_sources import settings_in_force
from holdfast.settings import Settings

page = Page("/settings", "settings.html", "Settings", rule=READ_ALL, is_live=False)

ELSEWHERE: Final = "code, an option, or pyproject.toml"
DAY: Final = 86_400


@page.read
async def read(view: View) -> Shown:
    client, settings = await view.verbs(), view.service.settings
    numbers = await view.service.gauge.numbers(client)
    return {
        "settings": settings_in_force(settings, {}, os.environ, elsewhere=ELSEWHERE),
        "states": {state.value: number for state, number in numbers.stats.states.items()},
        "kept": _kept(settings),
        "versions": {
            "Holdfast": version("holdfast"),
            "Schema of the store": await client.schema_version(),
            "Store": _kind(settings.url),
            "Wake-ups": await client.dispatcher.mode(),
            "Python": platform.python_version(),
        },
        "may_see_tokens": view.may(ADMIN),
    }


def _kind(url: str) -> str:
    """What keeps the tasks; where it is, is among the settings."""
    return url.partition(":")[0].partition("+")[0]


def _kept(settings: Settings) -> list[tuple[str, str]]:
    """What is kept for how long after its end."""
    return [
        ("Tasks that have ended, their results, histories and runs", length(settings.retention)),
        ("Dead letters", length(settings.dead_letter_retention)),
        ("Idempotency keys", length(settings.idempotency_window)),
        ("Inboxes", length(settings.inbox_retention)),
    ]


def length(seconds: float) -> str:
    """A long time in whole days."""
    return f"{seconds / DAY:g} days" if seconds >= DAY else duration(seconds)
