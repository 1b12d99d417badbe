"""The dashboard in a real browser: every page and action as people use them."""

from __future__ import annotations

import asyncio
from typing import Any

from playwright.async_api import Page, expect
from tests.integration.dashboard.web import log_in, submit
from tests.integration.server.live import LiveServer

from holdfast.core.task import State


async def soon(work: Any, *arguments: Any) -> Any:
    """Blocking work beside the browser."""
    return await asyncio.to_thread(work, *arguments)


async def test_the_address_with_the_token_logs_in_and_forgets_it(
    both: LiveServer, browser_page: Page
) -> None:
    page, asked = browser_page, list[str]()
    page.on("request", lambda request: asked.append(request.url))
    token = both.token("admin")

    await page.goto(f"{both.url}/login#token={token}")
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    assert page.url == f"{both.url}/"
    assert not any(token in url.partition("#")[0] for url in asked)
    assert token not in await page.evaluate("document.cookie + JSON.stringify(localStorage)")
    await page.go_back()
    assert token not in page.url


async def test_a_wrong_token_is_said_and_may_be_tried_again(
    dashboard: LiveServer, browser_page: Page
) -> None:
    page = browser_page
    await page.goto(f"{dashboard.url}/tasks")

    await page.get_by_label("Token").fill("hf_wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert")).to_contain_text("opens nothing")
    await page.get_by_label("Token").fill(dashboard.token("read"))
    await page.get_by_role("button", name="Log in").click()

    await expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("Token")).to_be_visible()


async def test_a_link_on_another_page_leads_in_although_the_cookie_stays_home(
    dashboard: LiveServer, ops: Page
) -> None:
    link = f'<a href="{dashboard.url}/tasks">the tasks</a>'
    await ops.goto("about:blank")
    await ops.set_content(link)

    await ops.get_by_role("link").click()

    await expect(ops.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()


async def test_with_the_keyboard_alone_one_logs_in_and_cancels_a_task(
    dashboard: LiveServer, browser_page: Page
) -> None:
    page, task_id = browser_page, submit(dashboard, "shop.add", a=1)
    await page.goto(f"{dashboard.url}/login")
    await page.keyboard.type(dashboard.token("admin"))  # the field has the focus
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    await tab_to(page, "Tasks")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
    await tab_to(page, "shop.add")
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Why it waits")).to_be_visible()
    await tab_to(page, "Cancel")
    await page.keyboard.press("Enter")

    await expect(page.locator(".note.good")).to_have_text("Cancelled.")
    assert outline != "none"
    assert (await soon(dashboard.app.get, task_id)).state is State.CANCELLED


async def tab_to(page: Page, text: str) -> None:
    for _ in range(60):
        await page.keyboard.press("Tab")
        if (await page.evaluate("document.activeElement.textContent")).strip() == text:
            return
    raise AssertionError(f"{text} cannot be reached by Tab")


async def test_the_list_follows_what_happens(both: LiveServer, browser_page: Page) -> None:
    page = browser_page
    await log_in(page, both, "admin")
    await page.goto(f"{both.url}/tasks")
    await expect(page.locator("main")).to_contain_text("There is no task yet")

    task_id = await soon(lambda: submit(both, "shop.add", a=1))
    row = page.locator(f'tr[data-key="{task_id}"]')
    await expect(row).to_contain_text("queued")
    await soon(both.work)

    await expect(row).to_contain_text("completed")


async def test_updates_keep_ticks_typed_text_open_folds_focus_and_place(
    dashboard: LiveServer, ops: Page
) -> None:
    ids = [submit(dashboard, "shop.add", a=n) for n in range(40)]
    await ops.set_viewport_size({"width": 1000, "height": 500})
    await ops.goto(f"{dashboard.url}/tasks")
    await expect(ops.locator("#live-says")).to_have_text("Live")
    box = ops.locator(f'input[value="{ids[3]}"]')
    await box.check()
    await ops.get_by_text("More filters").click()
    await ops.get_by_label("Tag").fill("half typed")
    await box.focus()
    await ops.evaluate("window.scrollTo(0, 700)")
    place = await ops.evaluate("window.scrollY")

    await soon(dashboard.app.cancel, ids[5])
    await expect(ops.locator(f'tr[data-key="{ids[5]}"]')).to_contain_text("cancelled")

    await expect(box).to_be_checked()
    await expect(box).to_be_focused()
    await expect(ops.get_by_label("Tag")).to_have_value("half typed")
    await expect(ops.locator("details.more")).to_have_attribute("open", "")
    await expect(ops.locator("#chosen")).to_have_text("1 chosen")
    assert await ops.evaluate("window.scrollY") == place


async def test_updates_can_be_paused(dashboard: LiveServer, ops: Page) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    await ops.goto(f"{dashboard.url}/tasks/{task_id}")
    state = ops.locator(".sub .state")
    await expect(ops.locator("#live-says")).to_have_text("Live")

    await ops.get_by_role("button", name="Pause").click()
    await expect(ops.locator("#live-says")).to_have_text("Paused")
    await soon(dashboard.app.cancel, task_id)
    await soon(dashboard.until, lambda: dashboard.connections() <= 1)
    await expect(state).to_have_text("queued")
    await ops.get_by_role("button", name="Go on").click()

    await expect(state).to_have_text("cancelled")
    await expect(ops.locator("#polite")).to_have_text("cancelled")  # and is read aloud


async def test_where_streams_do_not_come_through_the_page_asks(
    dashboard: LiveServer, ops: Page
) -> None:
    async def only_polls(route: Any) -> None:
        if "text/event-stream" in route.request.headers["accept"]:
            await route.abort()
        else:
            await route.continue_()

    task_id = submit(dashboard, "shop.add", a=1)
    await ops.route("**/live/**", only_polls)
    await ops.goto(f"{dashboard.url}/tasks/{task_id}")

    await soon(dashboard.app.cancel, task_id)

    await expect(ops.locator(".sub .state")).to_have_text("cancelled", timeout=20_000)
    await expect(ops.locator("#live-says")).to_have_text("Live")


async def test_many_tasks_are_chosen_counted_and_cancelled(
    both: LiveServer, browser_page: Page
) -> None:
    page, ids = browser_page, [submit(both, "shop.add", a=n) for n in range(3)]
    await log_in(page, both, "admin")
    await page.goto(f"{both.url}/tasks?task_type=shop.add")
    cancel = page.get_by_role("button", name="Cancel…")
    await expect(cancel).to_be_disabled()

    await page.get_by_label("This page").check()
    await expect(page.locator("#chosen")).to_have_text("3 chosen")
    await page.locator(f'input[value="{ids[0]}"]').uncheck()
    await cancel.click()
    await expect(page.get_by_role("heading", name="Cancel 2 tasks?")).to_be_visible()
    await page.get_by_role("button", name="Cancel 2 tasks").click()

    await expect(page.locator(".note.good")).to_have_text("2 tasks cancelled.")
    assert page.url == f"{both.url}/tasks?task_type=shop.add"
    assert (await soon(both.app.get, ids[0])).state is State.QUEUED


async def test_all_that_match_are_retried_after_a_count(dashboard: LiveServer, ops: Page) -> None:
    for _ in range(2):
        submit(dashboard, "shop.fail", message="no")
    await soon(dashboard.work)
    await ops.goto(f"{dashboard.url}/tasks")

    await ops.get_by_label("dead letter").check()
    await ops.get_by_role("button", name="Filter").click()
    await ops.get_by_label("All that match").check()
    await ops.get_by_role("button", name="Retry…").click()
    await ops.get_by_role("button", name="Retry 2 tasks").click()

    await expect(ops.locator(".note.good")).to_have_text("2 tasks started again.")
    assert ops.url == f"{dashboard.url}/tasks?status=dead_letter"
    assert await soon(lambda: dashboard.app.count(state="queued")) == 2


async def test_filters_are_kept_as_a_view_and_forgotten(dashboard: LiveServer, ops: Page) -> None:
    await ops.goto(f"{dashboard.url}/tasks")
    await ops.get_by_label("Queue", exact=True).fill("mail")
    await ops.get_by_role("button", name="Filter").click()
    await expect(ops.locator(".empty")).to_contain_text("No task matches Queue mail")

    await ops.get_by_label("Keep these filters as").fill("the mail")
    await ops.get_by_role("button", name="Save view").click()
    await ops.goto(f"{dashboard.url}/tasks")
    await ops.get_by_role("link", name="the mail").click()
    await expect(ops.get_by_label("Queue", exact=True)).to_have_value("mail")
    await ops.get_by_role("button", name="Forget the view the mail").click()

    await expect(ops.locator(".note.good")).to_have_text("The saved view is gone.")
    await expect(ops.get_by_role("link", name="the mail")).to_have_count(0)


async def test_a_task_is_looked_at_edited_and_started_again(
    both: LiveServer, browser_page: Page
) -> None:
    page, task_id = browser_page, submit(both, "shop.fail", message="no luck")
    await soon(both.work)
    await log_in(page, both, "admin")
    await page.get_by_label("Find a task").fill(task_id[:35])
    await page.keyboard.press("Enter")

    await expect(page.locator(".error-body")).to_have_text("no luck")
    await page.locator("summary", has_text="Traceback").click()
    await expect(page.locator("pre[aria-label=Traceback]")).to_contain_text("RuntimeError")
    await page.get_by_role("link", name="Edit and submit anew").click()
    await page.get_by_label("message").fill("unquoted")
    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_label("message")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("message").fill('"another"')
    await page.get_by_role("button", name="Submit").click()
    await expect(page.locator(".note.good")).to_have_text("This is the new task.")
    await expect(page.locator("pre[aria-label=Arguments]")).to_contain_text("another")

    await page.goto(f"{both.url}/tasks/{task_id}")
    await page.get_by_role("button", name="Retry").click()
    await expect(page.locator(".sub .state")).to_have_text("queued")


async def test_times_are_the_viewers_own_and_utc_on_hover(dashboard: LiveServer, ops: Page) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    await ops.goto(f"{dashboard.url}/tasks/{task_id}")

    time = ops.locator(".facts time").first
    told = await time.evaluate(
        "t => [t.title, t.textContent, new Intl.DateTimeFormat(undefined,"
        " {timeStyle: 'medium'}).format(new Date(t.dateTime))]"
    )

    assert told[0].endswith(" UTC")
    assert told[1] == told[2]


async def test_without_scripts_everything_still_works(
    dashboard: LiveServer, browser_page: Page
) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    await browser_page.route("**/*.js", lambda route: route.abort())
    await log_in(browser_page, dashboard, "admin")
    await browser_page.goto(f"{dashboard.url}/tasks")
    await expect(browser_page.locator("td time").first).to_contain_text("UTC")

    await browser_page.locator(f'input[value="{task_id}"]').check()
    await browser_page.get_by_role("button", name="Cancel…").click()
    await browser_page.get_by_role("button", name="Cancel 1 task").click()

    await expect(browser_page.locator(".note.good")).to_have_text("1 task cancelled.")


async def test_a_store_that_is_away_is_said_and_the_page_comes_back_by_itself(
    dashboard: LiveServer, ops: Page
) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    await ops.goto(f"{dashboard.url}/tasks/{task_id}")
    await expect(ops.locator("#live-says")).to_have_text("Live")

    dashboard.service.state.service.away = "it is being moved"
    await expect(ops.locator("#away")).to_contain_text("The store is away")
    second = await ops.context.new_page()
    await second.goto(f"{dashboard.url}/tasks")
    await expect(second.get_by_role("heading", name="The store is away")).to_be_visible()
    assert "being moved" not in await second.content()
    dashboard.service.state.service.away = None

    await expect(ops.locator("#away")).to_be_hidden()
    await expect(second.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
