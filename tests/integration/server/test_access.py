"""Deny by default: every route, and every way not to be allowed in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx
import pytest
from starlette.routing import Route
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Holdfast
from holdfast.core.token import Scope
from holdfast.server import brake
from holdfast.server.access import TABLE, Rule, methods_of
from holdfast.server.app import create_app

NOBODY = "018f3f6e-0000-7000-8000-000000000000"
GUARDED = [
    (method, path, rule)
    for path, methods in TABLE.items()
    for method, rule in methods.items()
    if rule is not None
]
ENDPOINTS = [f"{method} {path}" for method, path, _ in GUARDED]


def filled(path: str) -> str:
    path = path.replace("{limit:path}", "limit:nobody")
    for part in ("task_id", "worker_id", "token_id", "queue", "item_id"):
        path = path.replace(f"{{{part}}}", NOBODY)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for all: these tests change nothing in it, and try more bad tokens than most."""
    folder = tmp_path_factory.mktemp("access")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brake, "MOST_FAILURES", 1_000_000)
        with serve(make_app(f"sqlite:///{folder}/tasks.db")) as live:
            live.hurry()  # streams end at once
            yield live


@pytest.fixture(scope="module")
def headers(server: LiveServer) -> dict[str, str | None]:
    """Every way not to be allowed in, as an Authorization header."""
    good = server.token("admin")
    revoked = server.token("admin")
    server.app.wait_for(server.app.client.tokens.revoke(revoked.split("_")[1]))
    expired = server.token("admin", expires=0.001)
    time.sleep(0.01)
    other_secret = good[:-43] + "A" * 43
    return {
        "no token": None,
        "revoked": f"Bearer {revoked}",
        "expired": f"Bearer {expired}",
        "wrong secret": f"Bearer {other_secret}",
        "unknown": f"Bearer hf_{'0' * 16}_{'A' * 43}",
        "empty": "",
        "no kind": good,
        "basic": f"Basic {good}",
        "two words": f"Bearer {good} {good}",
        "longer": f"Bearer {good}x",
        "shorter": f"Bearer {good[:-1]}",
        "upper case": f"Bearer {good.upper()}",
        "null": "Bearer null",
        "quoted": f'Bearer "{good}"',
        "not ascii": "Bearer hf_é",
        "long": f"Bearer {'a' * 5000}",
        "bare": "Bearer",
    }


WAYS = [
    "no token", "revoked", "expired", "wrong secret", "unknown", "empty", "no kind", "basic",
    "two words", "longer", "shorter", "upper case", "null", "quoted", "not ascii", "long", "bare",
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_endpoint_opens_without_a_token_that_holds(
    server: LiveServer, headers: dict[str, str | None], way: str
) -> None:
    given = headers[way]
    sent = {} if given is None else {b"Authorization": given.encode("latin-1")}
    client, answers = server.client(), {}

    for method, path, _ in GUARDED:
        answers[f"{method} {path}"] = client.request(method, filled(path), headers=sent)

    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
        ENDPOINTS, 401
    )
    codes = {answer.json()["code"] for answer in answers.values()}
    assert codes == {"missing_token" if given is None else "invalid_token"}
    assert all(answer.headers["www-authenticate"] for answer in answers.values())


@pytest.mark.parametrize(("method", "path", "needed"), GUARDED, ids=ENDPOINTS)
def test_no_endpoint_opens_for_a_token_with_other_scopes(
    server: LiveServer, method: str, path: str, needed: Rule
) -> None:
    others = [scope.value for scope in Scope if scope not in {*needed.scopes, Scope.ADMIN}]

    answer = server.client(*others).request(method, filled(path))

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert f'scope="{needed.scopes[0]}"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize(("method", "path", "needed"), GUARDED, ids=ENDPOINTS)
@pytest.mark.parametrize("as_admin", [False, True])
def test_every_endpoint_opens_for_its_scope_and_for_an_admin(
    server: LiveServer, method: str, path: str, needed: Rule, as_admin: bool
) -> None:
    client = server.client("admin" if as_admin else needed.scopes[-1].value)

    answer = client.request(method, filled(path))

    assert answer.status_code not in {401, 403}


def test_every_route_is_in_the_table_and_the_table_names_no_other(sqlite_url: str) -> None:
    app = create_app(Holdfast(url=sqlite_url))

    routes = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or ())
        if method != "HEAD"
    }

    assert routes == {(method, path) for path, methods in TABLE.items() for method in methods}
    assert all(isinstance(route, Route) for route in app.routes), "mounts need a look of their own"


async def test_a_route_that_is_not_in_the_table_is_closed(sqlite_url: str) -> None:
    holdfast = make_app(sqlite_url)
    app = create_app(holdfast)
    app.add_api_route("/api/v1/forgotten", lambda: "open", methods=["GET"])
    async with holdfast:
        _, text = await holdfast.client.tokens.create("test", {Scope.ADMIN})
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            anybody = await client.get("/api/v1/forgotten")
            admin = await client.get(
                "/api/v1/forgotten", headers={"Authorization": f"Bearer {text}"}
            )

    assert (anybody.status_code, admin.status_code) == (401, 404)


def test_a_path_that_is_nowhere_is_told_only_to_those_with_a_token(server: LiveServer) -> None:
    paths = ["/", "/api", "/api/v1/task", "/api/v1/tasks/", "//api/v1/tasks", "/docs", "/redoc"]

    for path in paths:
        url = httpx.URL(server.url).copy_with(raw_path=path.encode())
        assert server.client().get(url).status_code == 401
        assert server.admin.get(url).status_code == 404


@pytest.mark.parametrize("path", TABLE)
def test_a_wrong_method_is_405_with_all_that_are_allowed(server: LiveServer, path: str) -> None:
    allowed = set(TABLE[path])
    answers = {
        method: server.admin.request(method, filled(path))
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"}
        - allowed
    }

    assert {answer.status_code for answer in answers.values()} == {405}
    for answer in answers.values():
        assert set(answer.headers["allow"].split(", ")) == allowed


def test_two_authorization_headers_are_one_too_many(server: LiveServer) -> None:
    good = f"Bearer {server.token('admin')}"

    answer = server.client().get(
        "/api/v1/tasks", headers=[("Authorization", good), ("Authorization", good)]
    )

    assert answer.status_code == 401


def test_parts_of_a_path_do_not_swallow_slashes() -> None:
    assert methods_of("/api/v1/tasks/a/b/why") is None
    assert methods_of("/api/v1/tasks/a\n/why") is not None  # nothing special: a task of that name


async def test_a_websocket_is_closed(sqlite_url: str) -> None:
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/api/v1/tasks", "headers": []}
    await create_app(make_app(sqlite_url))(scope, asyncio.Queue[dict[str, object]]().get, send)

    assert sent == [{"type": "websocket.close", "code": 1008}]
