"""Queues, gates, workers and dead letters as people use them, in a real Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped] # has no types
from playwright.async_api import Page, expect
from tests.integration.dashboard.test_dead_letter_pages import die
from tests.integration.dashboard.test_gate_pages import BREAKER, LIMIT, address, with_gates
from tests.integration.dashboard.test_worker_pages import ANNA, BERT, claim, register
from tests.integration.dashboard.web import log_in, submit
from tests.integration.server.live import LiveServer, serve

from holdfast.core.breaker import BreakerState
from holdfast.core.fleet import WorkerInfo
from holdfast.core.task import State, WorkerId
from holdfast.dashboard.app import create_app
from holdfast.errors import InvalidOption

HOSTILE = [
    "<script>document.title='hit'</script>",
    '"><img src=x onerror="document.title=\'hit\'">',
    "'><svg/onload=document.title='hit'>",
    "\"onmouseover=document.title='hit'//",
    "javascript:document.title='hit'",
    "{{7*7}}${7*7}#{7*7}",
    "{% raw %}</template></textarea></title>",
    "<!--<img/src=x>-->]]>",
    "../../etc/passwd",
    "%3Cscript%3E&lt;b&gt;&amp;",
    "\u202eevil\u202c\u200b\ufeff",
    "a\tb\nc\rd",
    "'; DROP TABLE tasks; --",
    "😀" * 40,
    "W" * 190,
]
PAGES = [
    "/queues", "/queues/mail", "/gates", address(LIMIT), address(BREAKER), "/workers",
    "/workers/anna", "/dead-letters", "/dead-letters/confirm?action=replay",
    "/dead-letters/confirm?action=discard", "/dead-letters/0000000000000000",
]  # fmt: skip


@pytest.fixture(params=["sqlite_url", "fresh_schema"], ids=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    with serve(with_gates(request.getfixturevalue(request.param)), make=create_app) as server:
        yield server


@pytest.fixture
async def page(shop: LiveServer, browser_page: Page) -> Page:
    await log_in(browser_page, shop, "admin")
    return browser_page


def fill(server: LiveServer) -> None:
    """Something on every page."""
    die(server, "order 17 refused", "order 18 refused")
    submit(server, "shop.mail", to="ann")
    for _ in range(2):
        submit(server, "shop.settle")
        submit(server, "shop.order", customer=1, items=[])
    register(server, ANNA, BERT)
    claim(server, ANNA)


async def test_a_queue_is_paused_and_resumed_by_its_buttons(shop: LiveServer, page: Page) -> None:
    submit(shop, "shop.mail", to="ann")

    await page.goto(f"{shop.url}/queues")
    await page.get_by_role("button", name="Pause queue mail").press("Enter")
    await expect(page.get_by_role("status").first).to_contain_text("Queue mail is paused")
    assert [each.paused for each in shop.app.stats().queues] == [True]
    await page.get_by_role("link", name="mail").click()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_text("Queue mail goes on.")).to_be_visible()

    assert not any(each.paused for each in shop.app.stats().queues)


async def test_a_page_shows_by_itself_what_another_did(shop: LiveServer, page: Page) -> None:
    submit(shop, "shop.mail", to="ann")
    await page.goto(f"{shop.url}/queues/mail")
    await expect(page.locator("#live-says")).to_have_text("Live")

    shop.app.pause("mail")

    await expect(page.get_by_role("button", name="Resume")).to_be_visible()


async def test_a_capacity_is_set_where_it_is_shown(shop: LiveServer, page: Page) -> None:
    ids = [submit(shop, "shop.settle") for _ in range(2)]
    await page.goto(f"{shop.url}/gates?kind=limit")
    await page.get_by_role("link", name=LIMIT).click()

    await page.get_by_label("Tasks at a time").fill("x")
    await page.get_by_label("Tasks at a time").press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="got 'x'")).to_be_visible()
    await expect(page.get_by_label("Tasks at a time")).to_have_value("x")
    assert shop.app.get(ids[1]).state is State.BLOCKED
    await page.get_by_label("Tasks at a time").fill("2")
    await page.get_by_role("button", name="Set").click()
    await expect(page.get_by_text("Now 2 may pass")).to_be_visible()
    assert shop.app.get(ids[1]).state is State.QUEUED
    await page.get_by_role("button", name="Take back what was set").click()
    await expect(page.get_by_text("The code decides again.")).to_be_visible()

    found = shop.app.limit(LIMIT)
    assert found is not None
    assert not found.limit.is_set


async def test_a_breaker_is_opened_and_reset_by_its_buttons(shop: LiveServer, page: Page) -> None:
    submit(shop, "shop.settle")
    await page.goto(f"{shop.url}{address(BREAKER)}")
    seen = []

    for button, says in (("Open", "Open: "), ("Close", "Closed: "), ("Reset", "The code decides")):
        await page.get_by_role("button", name=button, exact=True).click()
        await expect(page.get_by_role("status").first).to_contain_text(says)
        found = shop.app.limit(BREAKER)
        assert found is not None
        seen.append((found.limit.state, found.limit.is_set))

    assert seen == [
        (BreakerState.OPEN, True), (BreakerState.CLOSED, True), (BreakerState.CLOSED, False)
    ]  # fmt: skip


async def test_a_worker_is_drained_after_a_second_word(shop: LiveServer, page: Page) -> None:
    register(shop, ANNA)
    await page.goto(f"{shop.url}/workers")
    await page.get_by_role("link", name="anna").click()

    await expect(page.get_by_role("button", name="Drain this worker")).to_be_hidden()
    await page.get_by_text("Drain…").click()
    await page.get_by_role("button", name="Drain this worker").click()

    await expect(page.get_by_text("was asked to finish what it has")).to_be_visible()
    (worker,) = shop.app.workers()
    assert worker.drain_requested


async def test_dead_letters_are_replayed_and_discarded_group_by_group(
    shop: LiveServer, page: Page
) -> None:
    orders = await asyncio.to_thread(die, shop, "order 17 refused", "order 18 refused")
    (other,) = await asyncio.to_thread(die, shop, "no such user")

    await page.goto(f"{shop.url}/dead-letters")
    await page.get_by_role("link", name="Replay shop.fail: RuntimeError").first.click()
    await page.get_by_label("or spread over so many minutes").fill("soon")
    await page.get_by_role("button", name="Replay 2 tasks").click()
    await expect(page.get_by_role("alert").filter(has_text="Expected minutes")).to_be_visible()
    assert [shop.app.get(each).state for each in orders] == [State.DEAD_LETTER] * 2
    await page.get_by_label("or spread over so many minutes").fill("10")
    await page.get_by_role("button", name="Replay 2 tasks").click()
    await expect(page.get_by_text("2 tasks start again.")).to_be_visible()
    assert shop.app.count(ids=orders, state="queued") == 2
    await page.get_by_role("link", name="Discard all that match…").click()
    await page.get_by_role("button", name="Discard 1 task").click()
    await expect(page.get_by_text("1 task is forgotten.")).to_be_visible()

    assert shop.app.count(ids=[other]) == 0


async def test_one_dead_letter_is_replayed_from_its_group(shop: LiveServer, page: Page) -> None:
    (dead,) = await asyncio.to_thread(die, shop, "no")
    await page.goto(f"{shop.url}/dead-letters")
    await page.get_by_role("link", name="shop.fail RuntimeError", exact=True).click()

    await page.get_by_role("button", name=f"Replay {dead}").click()

    await expect(page.get_by_text("starts again as soon as")).to_be_visible()
    await expect(page.get_by_text("This group is empty")).to_be_visible()
    assert shop.app.get(dead).state is State.QUEUED


@pytest.mark.parametrize(
    ("shop", "scheme"), [("sqlite_url", "light"), ("fresh_schema", "dark")], indirect=["shop"]
)
async def test_no_page_shuts_anybody_out(shop: LiveServer, page: Page, scheme: str) -> None:
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found: dict[str, object] = {}
    for is_full in (False, True):
        if is_full:
            await asyncio.to_thread(fill, shop)
        for path in PAGES:
            await page.goto(f"{shop.url}{path}")
            answer = await Axe().run(page)
            if answer.violations_count:
                found[f"{path} {is_full}"] = answer.generate_snapshot()

    assert found == {}


@pytest.mark.parametrize("shop", ["sqlite_url"], indirect=True)
async def test_every_page_fits_a_phone(shop: LiveServer, page: Page) -> None:
    await asyncio.to_thread(fill, shop)
    await page.set_viewport_size({"width": 360, "height": 780})

    too_wide = []
    for path in PAGES:
        await page.goto(f"{shop.url}{path}")
        if await page.evaluate("document.documentElement.scrollWidth") > 360:
            too_wide.append(path)

    assert too_wide == []


SEEN = """[
    document.title, document.querySelectorAll("main script, main img, main svg[onload]").length,
    document.documentElement.scrollWidth, innerWidth,
]"""


@pytest.mark.parametrize("shop", ["fresh_schema"], indirect=True)
async def test_hostile_words_are_shown_as_they_are(shop: LiveServer, page: Page) -> None:
    paths = ["/queues", "/gates", "/workers", "/dead-letters"]
    for number, text in enumerate(HOSTILE):
        await asyncio.to_thread(die, shop, text)
        submit(shop, "shop.keep", key=text)
        submit(shop, "shop.keep", key=text)
        register(shop, hostile(number, text))
        paths += [address(f"lock:{text}"), f"/workers/{quote(text, safe='')}"]
        queue = paused(shop, text)
        paths += [f"/queues/{quote(queue, safe='')}"] if queue else []
        word = quote(text, safe="")
        paths += [f"/gates?q={word}", f"/queues?q={word}", f"/workers?queue={word}"]
        paths += [f"/dead-letters?task_type={word}&queue={word}&error_type={word}"]

    for path in paths:
        answer = await page.goto(f"{shop.url}{path}")
        assert answer is not None
        assert answer.status in (200, 422), path
        title, strange, width, room = await page.evaluate(SEEN)
        assert title != "hit", path
        assert "Holdfast" in title, path
        assert strange == 0, path
        assert width <= room, path
    await page.goto(f"{shop.url}/workers")
    shown = await page.locator("main").text_content() or ""
    assert [text for text in HOSTILE if text.split("\n")[0] not in shown] == []


def hostile(number: int, text: str) -> WorkerInfo:
    return replace(
        ANNA, id=WorkerId(text), host=text, version=text, queues=(text,),
        capabilities=frozenset({text}), pid=number,
    )  # fmt: skip


def paused(server: LiveServer, name: str) -> str | None:
    """The queue of this name, if one can have it."""
    try:
        server.app.pause(name)
    except InvalidOption:
        return None
    return name
