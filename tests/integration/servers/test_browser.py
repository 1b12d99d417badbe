"""The browser that tests drive is a real one: it runs scripts, draws text, and stays at home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.async_api import Page, expect
from tests.kit.browser import VARIABLE, chromium, visiting
from tests.kit.servers.account import ServerError

PAGE = """<!doctype html><meta charset="utf-8"><title>A page</title>
<button onclick="document.querySelector('p').textContent = 'clicked'">Go</button><p>waiting</p>
"""


@contextmanager
def serving(page: str) -> Iterator[str]:
    """The address of a server that answers everything with this page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, name="page", daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


async def test_a_click_changes_the_page_and_text_is_drawn(browser_page: Page) -> None:
    with serving(PAGE) as address:
        await browser_page.goto(address)
        before = await browser_page.screenshot()

        await browser_page.get_by_role("button", name="Go").click()
        await expect(browser_page.locator("p")).to_have_text("clicked")
        after = await browser_page.screenshot()

    assert before.startswith(b"\x89PNG")
    assert after != before  # so the letters can be seen
    width = await browser_page.evaluate("document.querySelector('button').offsetWidth")
    assert width > 20  # and take room, as with a font they do


async def test_requests_to_other_machines_are_refused_and_told() -> None:
    page = '<img src="https://elsewhere.example/pixel.png"><p>here</p>'
    with serving(page) as address:
        async with visiting() as visit:
            await visit.page.goto(address)
            await expect(visit.page.locator("p")).to_have_text("here")

    with pytest.raises(AssertionError, match=r"elsewhere\.example"):
        visit.check()


async def test_a_script_that_fails_is_told() -> None:
    with serving("<script>nothing.here()</script>") as address:
        async with visiting() as visit:
            await visit.page.goto(address)

    with pytest.raises(AssertionError, match="nothing is not defined"):
        visit.check()


def test_a_browser_that_was_named_and_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "chromium"))

    with pytest.raises(ServerError, match="names no program"):
        chromium()
