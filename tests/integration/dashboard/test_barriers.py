"""Nobody is kept out: axe finds no barrier, phones show all of it, and hostile text stays text."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect
from tests.integration.dashboard.axe import UNFOLD, violations
from tests.integration.dashboard.web import log_in, submit
from tests.integration.server.live import LiveServer

from holdfast import Context, Holdfast

HOSTILE: Final = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg onload=alert(1)>",
    "javascript:alert(1)", "{{7*7}}", "{% raise %}", "</textarea><script>alert(1)</script>",
    "</title><script src=//evil.example></script>", "<a href=javascript:alert(1)>x</a>",
    "\" autofocus onfocus=alert(1) x=\"", "<iframe src=//evil.example>", "\u202egnp.exe",
    "<style>*{display:none}</style>", "<base href=//evil.example>", "&lt;script&gt;alert(1)&#x27;",
]  # fmt: skip


def fill(server: LiveServer) -> dict[str, str]:
    """Tasks of every kind, and the pages that show them."""
    app = server.app
    submit(server, "shop.add", a=1)
    failed = submit(server, "shop.fail", message="no")
    server.work()
    waits = [submit(server, "shop.order", customer=1, items=[]) for _ in range(2)][1]
    return {
        "overview": "/",
        "list": "/tasks",
        "filtered": "/tasks?status=dead_letter&queue=default&priority=normal",
        "nothing": "/tasks?queue=nothing",
        "mistake": "/tasks?status=bogus",
        "failed": f"/tasks/{failed}",
        "waits": f"/tasks/{waits}",
        "edit": f"/tasks/{failed}/edit",
        "done": f"/tasks/{app.list(state='completed').tasks[0].id}",
        "confirm": "/tasks/confirm?action=retry&all=yes&status=dead_letter",
        "no confirm": f"/tasks/confirm?action=discard&ids={waits}",
        "find": "/find?q=zzz",
        "failure": "/no/such/page",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_barrier_on_any_page(
    dashboard: LiveServer, browser_page: Page, scheme: Any
) -> None:
    page, pages = browser_page, await asyncio.to_thread(fill, dashboard)
    await page.emulate_media(color_scheme=scheme)
    await page.goto(f"{dashboard.url}/login")
    found = {"login": await violations(page, scheme)}
    await log_in(page, dashboard, "admin")

    for name, path in pages.items():
        await page.goto(f"{dashboard.url}{path}")
        await page.evaluate(UNFOLD)
        found[name] = await violations(page, scheme)

    assert {name: each for name, each in found.items() if each} == {}


async def test_nothing_scrolls_sideways_on_a_small_phone(
    dashboard: LiveServer, browser_page: Page
) -> None:
    page, pages = browser_page, await asyncio.to_thread(fill, dashboard)
    long = "W" * 180
    await asyncio.to_thread(
        lambda: dashboard.app.submit_by_name("shop.mail", {"to": long}, tags=[long], owner=long)
    )
    newest = dashboard.app.list(limit=1).tasks[0].id
    await page.set_viewport_size({"width": 360, "height": 740})
    await log_in(page, dashboard, "admin")

    wide = {}
    for name, path in (pages | {"long": f"/tasks/{newest}"}).items():
        await page.goto(f"{dashboard.url}{path}")
        await page.evaluate(UNFOLD)
        wide[name] = await page.evaluate("document.documentElement.scrollWidth")

    assert {name: width for name, width in wide.items() if width > 360} == {}


async def test_light_and_dark_follow_the_viewer(dashboard: LiveServer, ops: Page) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        await ops.emulate_media(color_scheme=scheme)
        grounds.add(await ops.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert len(grounds) == 2


async def test_no_tabindex_is_positive_and_every_page_has_its_landmarks(
    dashboard: LiveServer, ops: Page
) -> None:
    pages = await asyncio.to_thread(fill, dashboard)
    for path in list(pages.values())[:-1]:
        await ops.goto(f"{dashboard.url}{path}")
        assert await ops.locator("[tabindex]").evaluate_all(
            "all => all.every(e => e.tabIndex <= 0)"
        )
        assert await ops.locator("main").count() == 1
        assert await ops.locator("nav[aria-label]").count() >= 1
        assert await ops.locator("h1").count() == 1


def add_hostile(app: Holdfast) -> None:
    """A task that says and does everything with hostile words."""

    @app.task(name="shop.evil", queue="mail", max_retries=0)
    async def evil(ctx: Context, words: list[str], one: str, fails: bool) -> dict[str, str]:
        for word in words:
            ctx.log(word)
            ctx.progress(1, 2, word)
        await ctx.step(f"s{one}"[:190], lambda: words)
        if fails:
            raise type("".join(one.split())[:80] or "Evil", (Exception,), {})("\n".join(words))
        return {word: word for word in words}


async def test_hostile_words_stay_words_wherever_they_are_shown(
    both: LiveServer, browser_page: Page
) -> None:
    page, dialogs = browser_page, list[str]()
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    ids = await asyncio.to_thread(make_hostile_tasks, both)
    await log_in(page, both, "admin")

    for path in ["/", "/tasks", "/tasks?status=dead_letter", *(f"/tasks/{each}" for each in ids),
                 *(f"/tasks/{each}/edit" for each in ids[:3])]:  # fmt: skip
        await page.goto(f"{both.url}{path}")
        await page.evaluate(UNFOLD)
        await assert_calm(page)

    assert dialogs == []


def make_hostile_tasks(server: LiveServer) -> list[str]:
    add_hostile(server.app)
    ids = []
    for n, word in enumerate(HOSTILE):
        task = server.app.submit_by_name(
            "shop.evil",
            {"words": HOSTILE, "one": word, "fails": n % 2 == 0},
            tags=[word],
            owner=word,
            unique_key=word,
            lock=word,
        )
        ids.append(str(task.id))
    server.work()
    # A queue's name that nobody serves, and a schedule's and a worker's word for it.
    queue = "<script>alert(1)</script>"
    made = server.app.submit_by_name("shop.add", {"a": 1}, queue=queue)
    return [*ids, str(made.id)]


async def assert_calm(page: Page) -> None:
    """No markup came of any word, and the page is drawn as ever."""
    strange = "main script, main iframe, main img, main style, main base, main a[href^=javascript]"
    assert await page.locator(strange).count() == 0
    assert await page.locator("main [onload], main [onerror], main [onfocus]").count() == 0
    await expect(page.get_by_role("navigation", name="Dashboard")).to_be_visible()


async def test_hostile_words_stay_words_in_every_field(dashboard: LiveServer, ops: Page) -> None:
    dialogs = list[str]()
    ops.on("dialog", lambda dialog: dialogs.append(dialog.message))
    task_id = submit(dashboard, "shop.mail", to="ann")

    for number, word in enumerate(HOSTILE):
        await ops.goto(f"{dashboard.url}/tasks")
        await ops.get_by_text("More filters").click()
        for label in ("Task", "Queue", "Tag", "Owner", "Error", "Lock", "Unique key"):
            await (
                ops.get_by_role("textbox", name=label, exact=True)
                .or_(ops.get_by_role("combobox", name=label, exact=True))
                .fill(word)
            )
        await ops.get_by_role("button", name="Filter").click()
        await assert_calm(ops)
        if await ops.get_by_label("Keep these filters as").count():
            await ops.get_by_label("Keep these filters as").fill(word[:60])
            await ops.get_by_role("button", name="Save view").click()
            await expect(ops.locator(".note")).not_to_have_count(0)
            await assert_calm(ops)
        await ops.get_by_label("Find a task").fill(word)
        await ops.get_by_label("Find a task").press("Enter")
        await assert_calm(ops)
        if number < 4:
            await ops.goto(f"{dashboard.url}/tasks/{task_id}/edit")
            await ops.get_by_label("to JSON").fill(word)
            await ops.get_by_role("button", name="Submit").click()
            await expect(ops.get_by_label("to JSON")).to_have_value(word)
            await assert_calm(ops)

    assert dialogs == []
