"""The dashboard inside somebody else's app, below a path of its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from tests.integration.dashboard.web import HTML
from tests.integration.server.shop import make_app

from holdfast import Holdfast
from holdfast.dashboard import holdfast_dashboard
from holdfast.server.running import listen

ROOT = "/ops/queue"


@pytest.fixture
def shop(sqlite_url: str) -> Iterator[Holdfast]:
    with make_app(sqlite_url) as app:
        yield app


@pytest.fixture
def product(shop: Holdfast) -> Iterator[httpx.Client]:
    """A client of an app that has the dashboard at `ROOT`."""
    app = FastAPI()
    app.mount(ROOT, holdfast_dashboard(shop))
    app.get("/")(lambda: {"hello": "product"})
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            with httpx.Client(base_url=url, headers={"Accept": HTML, "Origin": url}) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(30)


def log_in(shop: Holdfast, product: httpx.Client) -> None:
    _, token = shop.wait_for(shop.client.tokens.create("test", "admin"))
    answer = product.post(f"{ROOT}/login", data={"token": token, "next": "/tasks"})
    assert answer.headers["location"] == f"{ROOT}/tasks"
    assert f"Path={ROOT};" in answer.headers["set-cookie"]


def test_every_address_of_every_page_is_below_the_mount(
    shop: Holdfast, product: httpx.Client
) -> None:
    task_id = str(shop.submit_by_name("shop.mail", {"to": "ann"}).id)
    log_in(shop, product)

    for path in ("/", "/tasks", f"/tasks/{task_id}", f"/tasks/{task_id}/edit", "/find",
                 f"/tasks/confirm?action=cancel&ids={task_id}", "/nothing", "/login"):  # fmt: skip
        page = product.get(f"{ROOT}{path}", follow_redirects=True)
        pattern = r'(?:href|src|action|formaction|data-live-path)="(/[^"]*)"'
        addresses = re.findall(pattern, page.text)
        assert page.status_code in (200, 404)
        assert addresses
        assert [each for each in addresses if not each.startswith(f"{ROOT}/")] == []
        for each in addresses:
            if "/static/" in each:
                assert product.get(each).status_code == 200


def test_an_action_and_a_live_page_work_there_too(shop: Holdfast, product: httpx.Client) -> None:
    task_id = str(shop.submit_by_name("shop.mail", {"to": "ann"}).id)
    log_in(shop, product)
    page = product.get(f"{ROOT}/tasks/{task_id}").text
    (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', page))
    (live,) = re.findall(r'data-live-path="([^"]+)"', page)

    answer = product.post(f"{ROOT}/tasks/{task_id}/cancel", data={"csrf": csrf})
    told = product.get(live, headers={"Accept": "application/json"}).json()

    assert answer.headers["location"] == f"{ROOT}/tasks/{task_id}"
    assert any("is-cancelled" in each["html"] for each in told["fragments"])
    assert product.get("/").json() == {"hello": "product"}
    assert "openapi" in product.get("/openapi.json").text
    assert ROOT not in product.get("/openapi.json").text


def test_strangers_are_led_to_the_login_of_the_mount(product: httpx.Client) -> None:
    answer = product.get(f"{ROOT}/tasks?queue=mail")

    assert answer.headers["location"] == f"{ROOT}/login?next=%2Ftasks%3Fqueue%3Dmail"
