"""Schedules, executions and budgets to look at, and the pages that show them."""

from __future__ import annotations

import html
import re
from typing import Any, Final

from tests.integration.dashboard.web import Web
from tests.integration.server.live import LiveServer

HOSTILE: Final = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg onload=alert(1)>",
    "javascript:alert(1)", "{{7*7}}", "{% raise %}", "</textarea><script>alert(1)</script>",
    "</title><script src=//evil.example></script>", "<a href=javascript:alert(1)>x</a>",
    "\" autofocus onfocus=alert(1) x=\"", "<iframe src=//evil.example>", "\u202egnp.exe",
    "<style>*{display:none}</style>", "<base href=//evil.example>", "&lt;script&gt;alert(1)&#x27;",
]  # fmt: skip
PAGES: Final = {
    "schedules": "/schedules",
    "one": "/schedules/nightly",
    "new": "/schedules/new",
    "edit": "/schedules/nightly/edit",
    "backfill": "/schedules/nightly/backfill?begin=2026-01-01T00:00&end=2026-01-03T00:00",
    "delete": "/schedules/nightly/delete",
    "sentence": "/schedules/new/sentence",
    "executions": "/executions",
    "usage": "/usage",
    "budget": "/usage/budget?key=owner:anna",
    "new budget": "/usage/budget",
    "delete budget": "/usage/budget/delete?key=owner:anna",
    "settings": "/settings",
    "tokens": "/settings/tokens",
    "no schedule": "/schedules?text=nothing-like-it",
    "no execution": "/executions?schedule=nothing-like-it",
    "bad filter": "/schedules?status=bogus",
}


def schedule(server: LiveServer, name: str = "nightly", **words: Any) -> str:
    """A schedule of anna's, at 03:00 UTC."""
    given: dict[str, Any] = {"owner": "anna", "title": "Nightly sum", "arguments": {"a": 7}}
    given |= words
    task = given.pop("task", "shop.add")
    return server.app.schedules.create(task, "0 3 * * *", name=name, **given).id


def fill(server: LiveServer) -> str:
    """One of everything; the id of an execution."""
    schedule(server)
    schedule(server, "broken", task="shop.fail", arguments={}, title="Broken")
    ran = server.app.schedules.trigger("nightly")
    server.app.schedules.trigger("broken")
    server.app.budgets.set("owner:anna", day={"runs": 9}, month={"cost": 5.0})
    server.work()
    return str(ran)


def field(page: str, name: str) -> str:
    """The problem that is told at a field; nothing if there is none."""
    found = re.search(rf'<p class="problem" id="p-{re.escape(name)}">(.*?)</p>', page, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def sent(somebody: Web, path: str, **fields: str | list[str]) -> str:
    """What is said once a form was taken."""
    return somebody.said(somebody.post(path, **fields))
