"""Pictures of the dashboard for the docs: a demo with data, light on a desk and dark on a phone.

python -m scripts.screenshots                 # writes docs/images/dashboard/*.png
python -m scripts.screenshots somewhere/else
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from playwright.async_api import Page, expect
from scripts.screenshot_agenda import PAGES as AGENDA
from scripts.screenshot_shop import fill, make_shop
from tests.integration.server.live import LiveServer, serve
from tests.kit.browser import visiting

from holdfast.core.task import Priority
from holdfast.dashboard.app import create_app
from holdfast.dashboard.dead_groups import first_line, group_key
from holdfast.dashboard.overview import Alert, Minute, Wait

DOCS: Final = Path(__file__).resolve().parent.parent / "docs/images/dashboard"
LOOKS: Final = (("light", 1280, 860), ("dark", 360, 780))
PAGES: Final = {
    "overview": "/",
    "tasks": "/tasks",
    "failed": "/tasks?status=failed&status=dead_letter&sort=-finished_at",
    "queues": "/queues",
    "queue": "/queues/reports",
    "queue-unserved": "/queues/search",
    "gates": "/gates",
    "gate-limit": "/gates/limit:payments",
    "gate-lock": "/gates/lock:image:7",
    "gate-breaker": "/gates/breaker:task:partners.push",
    "workers": "/workers",
    "dead-letters": "/dead-letters",
    "dead-replay": "/dead-letters/confirm?action=replay&queue=reports",
    "dead-discard": "/dead-letters/confirm?action=discard",
} | AGENDA


class Example:
    """An hour that a shop may have had."""

    def minutes(self) -> Sequence[Minute]:
        now = datetime.now(UTC)
        return [
            Minute(
                now - timedelta(minutes=60 - n),
                round(420 + 90 * math.sin(n / 7) + 25 * math.sin(n * 2.3)),
                round(max(0.0, 4 + 9 * math.sin(n / 5))) if n < 48 else 14 + n % 5,
            )
            for n in range(60)
        ]

    def depths(self) -> Mapping[str, Sequence[int]]:
        return {
            "mail": [round(30 + 20 * math.sin(n / 9) + n % 7) for n in range(360)],
            "reports": [round(max(0.0, n - 200) / 14) for n in range(360)],
            "default": [n % 3 for n in range(360)],
        }

    def waits(self) -> Sequence[Wait]:
        return [
            Wait(Priority.CRITICAL, 0.004, 0.031),
            Wait(Priority.HIGH, 0.012, 0.24),
            Wait(Priority.NORMAL, 0.09, 2.4),
            Wait(Priority.LOW, 1.8, 46.0),
        ]

    def alerts(self) -> Sequence[Alert]:
        return ()


@contextmanager
def working(url: str) -> Iterator[None]:
    """Workers beside the server, until the pictures are taken."""
    loop = asyncio.new_event_loop()

    async def work() -> None:
        app = make_shop(url)
        async with app:
            await app.run_worker(concurrency=6, queues=["default", "mail", "reports", "deliveries"])

    working = loop.create_task(work())

    def run() -> None:
        try:
            loop.run_until_complete(working)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(working.cancel)
        thread.join(20)


async def picture(page: Page, server: LiveServer, path: str, file: Path) -> None:
    await page.goto(f"{server.url}{path}")
    if await page.locator("body[data-live-path]").count():
        await expect(page.locator("#live-says")).to_have_text("Live")
    await page.screenshot(path=file, full_page=True)


async def look(server: LiveServer, folder: Path) -> None:
    token = server.token("admin")
    async with visiting() as visit:
        page = visit.page
        for scheme, width, height in LOOKS:
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            await page.set_viewport_size({"width": width, "height": height})
            await page.context.clear_cookies()
            await page.goto(f"{server.url}/login")
            await page.screenshot(path=folder / f"login-{scheme}-{width}.png")
            await page.get_by_label("Token").fill(token)
            await page.get_by_role("button", name="Log in").click()
            await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
            for name, path in (PAGES | ids_of(server)).items():
                await picture(page, server, path, folder / f"{name}-{scheme}-{width}.png")
            await confirm(page, server, folder / f"confirm-{scheme}-{width}.png")
        visit.check()


async def confirm(page: Page, server: LiveServer, file: Path) -> None:
    await page.goto(f"{server.url}/tasks/confirm?action=retry&all=yes&status=dead_letter")
    await page.screenshot(path=file, full_page=True)


def ids_of(server: LiveServer) -> dict[str, str]:
    """The pages of some tasks that differ."""
    wanted = {
        "task-running": {"name": "reports.monthly"},
        "task-failed": {"name": "billing.charge", "state": "dead_letter"},
        "task-waiting": {"name": "images.resize", "state": "blocked"},
        "task-chain": {"name": "stock.count"},
    }
    found = {}
    for name, words in wanted.items():
        task = server.app.list(limit=1, **words).tasks[0]  # type: ignore[arg-type]
        found[name] = f"/tasks/{task.id}"
    worker = server.app.workers()[0]
    group = grouped_key(server)
    run = server.app.executions.list(schedule="inbox", limit=1).executions[0]
    found["execution"] = f"/executions/{run.id}"
    return found | {
        "task-edit": f"{found['task-failed']}/edit",
        "worker": f"/workers/{worker.id}",
        "dead-group": f"/dead-letters/{group}",
    }


def grouped_key(server: LiveServer) -> str:
    """The key of the group that the unpaid orders are in."""
    (dead,) = server.app.list(name="billing.charge", state="dead_letter", limit=1).tasks
    assert dead.error is not None
    return group_key(dead.name, dead.error.type, first_line(dead.error.message))


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else DOCS
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        url = f"sqlite:///{home}/shop.db"
        shop = make_shop(url)
        with serve(shop, make=lambda app: create_app(app, trends=Example())) as server:
            fill(shop)
            with working(url):
                server.until(lambda: shop.count(state="dead_letter") >= 7)
                asyncio.run(look(server, folder))


if __name__ == "__main__":
    main(sys.argv[1:])
