"""Using the dashboard without a browser, and logging a browser in."""

from __future__ import annotations

import html
import re
from typing import Any, Unpack

import httpx
from playwright.async_api import Page, expect
from tests.integration.server.live import LiveServer

from holdfast.bounds import BoundWords

HTML = "text/html,application/xhtml+xml"


class Web:
    """A user without scripts: cookies, and forms with what is hidden in them."""

    def __init__(self, server: LiveServer, token: str | None = None, root: str = "") -> None:
        self.root = root
        self.client = server.client()
        self.client.headers.update({"Accept": HTML, "Origin": server.url})
        if token is not None:
            answer = self.client.post(f"{root}/login", data={"token": token})
            assert answer.status_code == 303, answer.text

    def get(self, path: str, **words: Any) -> httpx.Response:
        return self.client.get(f"{self.root}{path}", **words)

    def post(self, path: str, **fields: str | list[str]) -> httpx.Response:
        """Send a form as a page of ours would."""
        return self.client.post(f"{self.root}{path}", data={"csrf": self.csrf(), **fields})

    def csrf(self) -> str:
        """What the forms of this session have hidden in them."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/find").text)
        assert found is not None
        return html.unescape(found[1])

    def said(self, answer: httpx.Response) -> str:
        """Where an action leads, and what is said there."""
        assert answer.status_code == 303, answer.text
        page = self.client.get(answer.headers["location"])
        found = re.search(r'<p class="note[^>]*>(.*?)</p>', page.text)
        return html.unescape(found[1]) if found else ""


def web(server: LiveServer, *scopes: str, **bounds: Unpack[BoundWords]) -> Web:
    """Somebody with a fresh token of these scopes."""
    return Web(server, server.token(*scopes, **bounds))


async def log_in(page: Page, server: LiveServer, *scopes: str, **bounds: Any) -> None:
    """Type a fresh token into the page."""
    await page.goto(f"{server.url}/login")
    await page.get_by_label("Token").fill(server.token(*scopes, **bounds))
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def submit(server: LiveServer, name: str, **arguments: Any) -> str:
    """The id of a new task."""
    return str(server.app.submit_by_name(name, arguments).id)
