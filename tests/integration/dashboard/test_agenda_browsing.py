"""The pages of schedules, executions, usage and settings in a real browser."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect
from tests.integration.dashboard.agenda import (
    HOSTILE,
    PAGES,
    fill,
    schedule,
)
from tests.integration.dashboard.axe import UNFOLD, violations
from tests.integration.dashboard.web import log_in
from tests.integration.server.live import LiveServer

from holdfast.schedules.series import Status

FILL: Final = """word => {
    const kinds = "#main input:not([type]), #main input[type=text], #main textarea";
    const fields = [...document.querySelectorAll(kinds)];
    const seen = fields.filter(field => field.checkVisibility());
    for (const field of seen) {
        field.value = word;
        field.dispatchEvent(new Event("input", {bubbles: true}));
        field.dispatchEvent(new Event("change", {bubbles: true}));
    }
    return seen.length;
}"""
"""Type a word into every field that can be seen, and say how many there are."""
ABOUT: Final = (
    "title", "description", "purpose", "category", "delivery_title", "chat_id", "message_id"
)  # fmt: skip
STRANGE: Final = "main script, main iframe, main img, main style, main base"


async def seen(server: LiveServer) -> dict[str, str]:
    ran = await asyncio.to_thread(fill, server)
    return PAGES | {"execution": f"/executions/{ran}"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_barrier(dashboard: LiveServer, browser_page: Page, scheme: Any) -> None:
    page, pages = browser_page, await seen(dashboard)
    await page.emulate_media(color_scheme=scheme)
    await log_in(page, dashboard, "admin")

    found = {}
    for name, path in pages.items():
        await page.goto(f"{dashboard.url}{path}")
        await page.evaluate(UNFOLD)
        found[name] = await violations(page, scheme)

    assert {name: each for name, each in found.items() if each} == {}


async def test_nothing_scrolls_sideways_on_a_small_phone(
    dashboard: LiveServer, browser_page: Page
) -> None:
    page, pages = browser_page, await seen(dashboard)
    long = "W" * 180
    schedule(dashboard, long, title=long, owner=long, description=long, purpose=long)
    dashboard.app.schedules.pause(long, note=long)
    dashboard.app.budgets.set(f"owner:{long}", day={"runs": 3})
    await page.set_viewport_size({"width": 360, "height": 740})
    await log_in(page, dashboard, "admin")

    wide = {}
    for name, path in (pages | {"long": f"/schedules/{long}"}).items():
        await page.goto(f"{dashboard.url}{path}")
        await page.evaluate(UNFOLD)
        wide[name] = await page.evaluate("document.documentElement.scrollWidth")

    assert {name: width for name, width in wide.items() if width > 360} == {}


async def test_a_rule_is_previewed_while_it_is_typed_and_then_kept(
    both: LiveServer, browser_page: Page
) -> None:
    page = browser_page
    await log_in(page, both, "admin")
    await page.goto(f"{both.url}/schedules/new")
    preview = page.locator("#preview")

    await page.get_by_label("Task", exact=True).fill("shop.add")
    await page.get_by_label("Arguments").fill('{"a": 1}')
    await page.get_by_label("Zone").fill("Europe/Berlin")
    await page.get_by_label("Rule", exact=True).fill("30 9 * * 1-5")
    await expect(preview).to_contain_text("on Monday to Friday at 09:30, Europe/Berlin")
    await expect(preview.locator("li")).to_have_count(10)
    await page.get_by_label("Rule", exact=True).fill("30 25 * * 1-5")
    await expect(preview.locator(".problem")).to_contain_text("25")
    await page.get_by_label("Rule", exact=True).fill("every 90m")
    await expect(preview).to_contain_text("every 90 minutes")
    await page.get_by_label("Name").fill("often")
    await page.get_by_role("button", name="Make the schedule").click()

    await expect(page.locator(".note.good")).to_contain_text("This is the new schedule")
    made = both.app.schedules.get("often")
    assert made is not None
    assert (made.rule.step, made.rule.tz) == (5400, "Europe/Berlin")


async def test_a_schedule_is_steered_by_its_buttons(both: LiveServer, browser_page: Page) -> None:
    page = browser_page
    schedule(both)
    await log_in(page, both, "admin")
    await page.goto(f"{both.url}/schedules/nightly")

    for button, says in {
        "Run now": "It runs now",
        "Skip the next run": "left out",
        "Pause": "Paused",
        "Resume": "goes on",
    }.items():
        await page.locator("#main").get_by_role("button", name=button, exact=True).first.click()
        await expect(page.locator(".note.good")).to_contain_text(says)
    await page.get_by_role("link", name="Delete…").click()
    await page.get_by_role("button", name="Delete the schedule").click()

    await expect(page.locator(".note.good")).to_contain_text("is gone")
    assert both.app.schedules.get("nightly") is None
    assert both.app.count() == 1


async def test_a_page_follows_what_happens(dashboard: LiveServer, ops: Page) -> None:
    schedule(dashboard)
    await ops.goto(f"{dashboard.url}/schedules/nightly")
    await expect(ops.locator("#live-says")).to_have_text("Live")

    await asyncio.to_thread(dashboard.app.schedules.pause, "nightly", note="by somebody else")

    await expect(ops.locator('[data-live="head"]')).to_contain_text("by somebody else")


async def test_the_calendar_is_in_the_viewers_own_zone(
    dashboard: LiveServer, browser_page: Page
) -> None:
    schedule(dashboard)
    context = browser_page.context
    session = await context.new_cdp_session(browser_page)
    await session.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    await log_in(browser_page, dashboard, "admin")

    await browser_page.goto(f"{dashboard.url}/schedules")

    calendar = browser_page.locator("#calendar")
    await expect(calendar).to_have_attribute("data-zone", re.compile("Asia/(Kolkata|Calcutta)"))
    await expect(calendar.locator(".clock").first).to_have_text("08:30")


async def test_a_sentence_becomes_a_schedule(both: LiveServer, browser_page: Page) -> None:
    page = browser_page
    await log_in(page, both, "admin")
    await page.goto(f"{both.url}/schedules")
    await page.get_by_role("link", name="From a sentence").click()

    await page.get_by_label("What is to be done").fill("every weekday at 9 summarise my inbox")
    await page.get_by_label("Your zone").fill("Europe/Berlin")
    await page.get_by_role("button", name="Show what it would do").click()
    await expect(page.locator(".understood")).to_contain_text("Monday to Friday at 09:00")
    before = both.app.schedules.list().schedules
    await page.get_by_role("button", name="Yes, do this").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Summarise my inbox")
    (made,) = both.app.schedules.list().schedules
    assert list(before) == []
    assert made.status is Status.ACTIVE


async def test_a_token_is_made_copied_and_revoked(both: LiveServer, browser_page: Page) -> None:
    page = browser_page
    await log_in(page, both, "admin")
    await page.goto(f"{both.url}/settings")
    await page.get_by_role("link", name="Tokens").click()

    await page.get_by_label("Name", exact=True).fill("ci")
    await page.get_by_role("button", name="Make the token").click()
    secret = await page.locator(".secret pre").inner_text()
    await expect(page.locator(".secret").get_by_role("button", name="Copy")).to_be_visible()
    await page.get_by_role("link", name="I have it").click()
    await page.get_by_role("link", name="Revoke ci").click()
    await page.get_by_role("button", name="Revoke the token").click()

    await expect(page.locator(".note.good")).to_contain_text("The token ci is revoked")
    assert secret not in await page.content()
    assert both.app.wait_for(both.app.client.tokens.check(secret)) is None


async def test_a_budget_is_set_by_its_form(dashboard: LiveServer, ops: Page) -> None:
    await ops.goto(f"{dashboard.url}/usage")
    await ops.get_by_role("link", name="Set a budget").click()

    await ops.get_by_label("Its name").fill("anna")
    await ops.get_by_role("group", name="A day").get_by_label("Runs").fill("20")
    await ops.get_by_role("button", name="Set the budget").click()

    await expect(ops.get_by_role("table")).to_contain_text("0 of 20 runs")


async def test_hostile_words_stay_words_wherever_they_are_shown(
    dashboard: LiveServer, ops: Page
) -> None:
    dialogs = list[str]()
    ops.on("dialog", lambda dialog: dialogs.append(dialog.message))
    runs = await asyncio.to_thread(hostile, dashboard)

    for path in ["/schedules", "/executions", "/usage", "/settings/tokens",
                 *(f"/schedules/h{n}" for n in range(len(HOSTILE))),
                 *(f"/schedules/h{n}/{page}" for n in range(3)
                   for page in ("edit", "delete", "backfill")),
                 *(f"/executions/{run}" for run in runs)]:  # fmt: skip
        await ops.goto(f"{dashboard.url}{path}")
        assert await ops.locator(STRANGE).count() == 0, path
        assert await ops.locator("main [onload], main [onerror], main [onfocus]").count() == 0
    await ops.goto(f"{dashboard.url}/schedules/h0")
    await expect(ops.get_by_role("heading", level=1)).to_have_text(HOSTILE[0])

    assert dialogs == []


def hostile(server: LiveServer) -> list[str]:
    """Schedules, runs, budgets and tokens that are called what nobody should be."""
    app, runs = server.app, []
    for number, word in enumerate(HOSTILE):
        words: dict[str, Any] = dict.fromkeys(ABOUT, word)
        given = {"purpose": word, "title": word}
        app.schedules.create(
            "shop.assistant", "0 3 * * *", name=f"h{number}", owner="anna", arguments=given, **words
        )
        app.schedules.pause(f"h{number}", note=word)
        runs.append(str(app.schedules.trigger(f"h{number}")))
        if word.isprintable():
            app.budgets.set(f"owner:{word}", day={"runs": 3})
            app.wait_for(app.client.tokens.create(word, "read", owner=word))
    server.work()
    return runs


async def test_hostile_words_stay_words_in_every_field(dashboard: LiveServer, ops: Page) -> None:
    dialogs = list[str]()
    ops.on("dialog", lambda dialog: dialogs.append(dialog.message))
    schedule(dashboard)
    forms = {"/schedules/new": "Preview", "/schedules/nightly/edit": "Save",
             "/schedules/new/sentence": "Show what it would do", "/usage/budget": "Set the budget",
             "/settings/tokens": "Make the token", "/schedules": "Filter", "/executions": "Filter",
             "/usage": "Show"}  # fmt: skip

    for path, button in forms.items():
        for word in HOSTILE if path == "/schedules/new" else HOSTILE[:6]:
            await ops.goto(f"{dashboard.url}{path}")
            await ops.evaluate(UNFOLD)
            assert await ops.evaluate(FILL, word)
            await ops.locator("#main").get_by_role("button", name=button, exact=True).click()
            assert await ops.locator(STRANGE).count() == 0, (path, word)
            await expect(ops.get_by_role("navigation", name="Dashboard")).to_be_visible()

    assert dialogs == []


async def test_everything_works_by_keyboard(dashboard: LiveServer, ops: Page) -> None:
    schedule(dashboard)
    await ops.goto(f"{dashboard.url}/schedules/nightly")

    await ops.locator("#main").get_by_role("button", name="Run now").focus()
    await ops.keyboard.press("Enter")

    await expect(ops.locator(".note.good")).to_contain_text("It runs now")
