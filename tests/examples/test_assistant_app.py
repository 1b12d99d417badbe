"""The example product around the assistant, used in a real browser as its users would."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg onload=alert(1)>",
    "javascript:alert(1)", "{{7*7}}", "</li><script src=//evil.example></script>",
]  # fmt: skip


@pytest.fixture
def product(tmp_path: Path) -> Iterator[str]:
    """The address of the running example, on a store of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples/assistant_app/web.py"), str(port)],
        cwd=tmp_path,
        env=ours,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def open_page(page: Page, product: str, name: str, *, is_welcome: bool = True) -> None:
    for _ in range(300):
        try:
            async with httpx.AsyncClient() as client:
                await client.get(product)
            break
        except httpx.ConnectError:
            await asyncio.sleep(0.1)
    await page.context.clear_cookies()
    await page.goto(product)
    await page.get_by_label("Your name").fill(name)
    await page.get_by_role("button", name="Log in").click()
    if is_welcome:
        await expect(page.get_by_role("heading", name="Tasks")).to_be_visible()


async def say(page: Page, text: str) -> None:
    await page.locator("#text").fill(text)
    await page.get_by_role("button", name="Send").click()


async def test_a_sentence_becomes_a_task_and_its_result_arrives_by_itself(
    browser_page: Page, product: str
) -> None:
    page = browser_page
    await open_page(page, product, "Ann")

    await say(page, "every weekday at 9 summarise my inbox")
    await expect(page.locator("#said .created")).to_contain_text("Monday to Friday at 09:00")
    await expect(page.locator("#said .created .run")).to_have_count(5)
    await expect(page.locator("#tasks strong")).to_have_text("Summarise my inbox")

    await page.locator("#tasks").get_by_role("button", name="run").click()
    result = page.locator("#results li").first
    await expect(result).to_contain_text("summarise my inbox")

    await say(page, "pause it")
    await expect(page.locator("#tasks li.paused")).to_be_visible()
    await say(page, "at 26:10 sing")
    await expect(page.locator("#said .refused")).to_contain_text("There is no such time")
    if folder := os.environ.get("HOLDFAST_TEST_SCREENSHOTS"):
        await page.screenshot(path=Path(folder, "assistant.png"))


async def test_owners_see_only_their_own(browser_page: Page, product: str) -> None:
    await open_page(browser_page, product, "Ann")
    await say(browser_page, "every day at 8am water the plants")
    await expect(browser_page.locator("#tasks li")).to_have_count(1)

    await open_page(browser_page, product, "Bob")

    await expect(browser_page.locator("#no-tasks")).to_be_visible()
    await say(browser_page, "cancel the plants")
    await expect(browser_page.locator("#said .theirs")).to_be_visible()
    await open_page(browser_page, product, "Ann")
    await expect(browser_page.locator("#tasks li")).to_have_count(1)


async def test_whoever_comes_back_is_logged_in_and_finds_everything(
    browser_page: Page, product: str
) -> None:
    page = browser_page
    await open_page(page, product, "<Ann>", is_welcome=False)
    await expect(page.get_by_role("alert")).to_have_text("That name cannot be used.")
    await open_page(page, product, "Ann")
    await say(page, "every day at 8am water the plants")
    await page.locator("#tasks").get_by_role("button", name="run").click()
    await expect(page.locator("#results li")).to_have_count(1)

    await page.reload()

    await expect(page.locator("#who")).to_have_text("Ann")
    await expect(page.locator("#tasks li")).to_have_count(1)
    await expect(page.locator("#results li")).to_have_count(1)


async def test_hostile_words_stay_words(browser_page: Page, product: str) -> None:
    page, dialogs = browser_page, list[str]()
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await open_page(page, product, "Ann")

    for number, text in enumerate(HOSTILE, 1):
        await say(page, f"every day at 8am say {text}")
        await expect(page.locator("#said .theirs")).to_have_count(number)

    assert await page.locator("#said script, #tasks script, #tasks img, #said svg").count() == 0
    assert dialogs == []
