"""The pages of gates: who holds, who waits, and how many may pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.integration.dashboard.web import submit, web
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Breaker, Holdfast, Limit, Rate
from holdfast.core.breaker import BreakerState
from holdfast.dashboard.app import create_app

LIMIT = "limit:payments"
BREAKER = "breaker:task:shop.settle"
RATE = "rate:task:shop.push"


def with_gates(url: str) -> Holdfast:
    app = make_app(url, open_queues="js")

    @app.task(name="shop.settle", concurrency=Limit(1, name="payments"), breaker=Breaker())
    def settle() -> None: ...

    @app.task(name="shop.push", rate=Rate(1, per="1h"))
    def push() -> None: ...

    @app.task(name="shop.keep", lock="{key}")
    def keep(key: str) -> None: ...

    return app


@pytest.fixture(params=["sqlite_url", "fresh_schema"], ids=["sqlite", "postgres"])
def gated(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    with serve(with_gates(request.getfixturevalue(request.param)), make=create_app) as server:
        yield server


def address(name: str, verb: str = "") -> str:
    return f"/gates/{quote(name, safe='')}" + (f"/{verb}" if verb else "")


def names(page: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"]+)"', page)


def test_gates_of_every_kind_are_listed_filtered_and_explained(gated: LiveServer) -> None:
    for _ in range(2):
        submit(gated, "shop.settle")
        submit(gated, "shop.push")
        submit(gated, "shop.order", customer=1, items=[])
    ops = web(gated, "read")

    every = names(ops.get("/gates").text)
    locks = names(ops.get("/gates?kind=lock").text)
    found = names(ops.get("/gates?q=PAY").text)
    none = ops.get("/gates?q=nothing").text
    wrong = ops.get("/gates?kind=door")

    assert every == [BREAKER, LIMIT, "lock:customer:1", RATE]
    assert locks == ["lock:customer:1"]
    assert found == [LIMIT]
    assert "No gate that somebody uses or has set fits." in none
    assert wrong.status_code == 422
    assert "There is no kind of gate" in wrong.text
    assert "One task at a time has a resource" in none


def test_pages_of_gates_follow_each_other_without_gaps(both: LiveServer) -> None:
    for n in range(120):
        submit(both, "shop.order", customer=n, items=[])
    ops = web(both, "admin")

    seen: list[str] = []
    path: str | None = "/gates?q=customer"
    while path:
        page = ops.get(path).text
        seen += names(page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        path = following and following[1].replace("&amp;", "&")

    assert sorted(seen) == sorted(f"lock:customer:{n}" for n in range(120))


def test_a_gate_shows_who_holds_it_and_who_waits(gated: LiveServer) -> None:
    holder, waits = submit(gated, "shop.settle"), submit(gated, "shop.settle")
    one, two = (submit(gated, "shop.order", customer=1, items=[]) for _ in range(2))
    ops = web(gated, "read")

    limit = ops.get(address(LIMIT)).text
    lock = ops.get(address("lock:customer:1")).text

    for page, (has, stands) in {limit: (holder, waits), lock: (one, two)}.items():
        holders = page[page.index("Who holds it") : page.index("Who waits before it")]
        assert f'href="/tasks/{has}"' in holders
        assert f'href="/tasks/{stands}"' in page[page.index("Who waits before it") :]
    assert "formaction" not in limit + lock
    assert 'name="capacity"' not in limit + lock


def test_a_capacity_is_set_and_taken_back(gated: LiveServer) -> None:
    ids = [submit(gated, "shop.settle") for _ in range(3)]
    ops = web(gated, "admin")

    said = ops.said(ops.post(address(LIMIT, "set"), capacity=" 2 "))
    states = [gated.app.get(each).state for each in ids]
    closed = ops.said(ops.post(address(LIMIT, "set"), capacity="0"))
    page = ops.get(address(LIMIT)).text
    back = ops.said(ops.post(address(LIMIT, "unset")))
    limit = gated.app.limit(LIMIT)

    assert said == f"Now 2 may pass {LIMIT}, until that is taken back."
    assert states == ["queued", "queued", "blocked"]
    assert closed == f"Nobody may pass {LIMIT} now."
    assert "Take back what was set" in page
    assert "limit%3Apayments" in page  # as curl
    assert back == "The code decides again."
    assert limit is not None
    assert not limit.limit.is_set


def test_a_breaker_is_opened_closed_and_reset(gated: LiveServer) -> None:
    submit(gated, "shop.settle")
    ops = web(gated, "admin")
    seen = []

    for verb in ("open", "close", "unset"):
        ops.said(ops.post(address(BREAKER, verb)))
        found = gated.app.limit(BREAKER)
        assert found is not None
        seen.append((found.limit.state, found.limit.is_set))

    assert seen == [
        (BreakerState.OPEN, True), (BreakerState.CLOSED, True), (BreakerState.CLOSED, False)
    ]  # fmt: skip


@pytest.mark.parametrize("capacity", ["x", "", "-1", "1.5", "٣", "1000001", "0x10", "😀" * 40])
def test_what_is_no_capacity_is_said_at_the_field(gated: LiveServer, capacity: str) -> None:
    submit(gated, "shop.settle")

    answer = web(gated, "admin").post(address(LIMIT, "set"), capacity=capacity)

    assert answer.status_code == 422
    assert 'aria-invalid="true" aria-describedby="problem"' in answer.text
    assert "Expected a whole number from 0 to 1,000,000" in answer.text
    assert "data-live-path" not in answer.text
    found = gated.app.limit(LIMIT)
    assert found is not None
    assert (found.limit.capacity, found.limit.is_set) == (1, False)


@pytest.mark.parametrize(
    ("name", "verb", "says"),
    [
        ("limit:nobody", "set", "nobody uses it now"),
        ("limit:nobody", "unset", "nobody uses it now"),
        ("breaker:nobody", "open", "nobody uses it now"),
        ("lock:customer:1", "set", "nobody uses it now"),
        (LIMIT, "open", "This is no breaker"),
        ("nonsense", "set", "nobody uses it now"),
    ],
)
def test_a_gate_that_cannot_be_set_is_said_and_nothing_is_made(
    gated: LiveServer, name: str, verb: str, says: str
) -> None:
    submit(gated, "shop.settle")
    before = gated.app.limits()
    ops = web(gated, "admin")

    said = ops.said(ops.post(address(name, verb), capacity="3"))

    assert says in said
    assert gated.app.limits() == before


def test_a_gate_that_nobody_uses_says_so(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")

    assert "Nobody uses it now and nobody has set it" in ops.get(address("lock:gone")).text
    assert ops.get(address("latch:x")).status_code == 404
    assert ops.get(address("door")).status_code == 404
    assert ops.get("/gates?name=limit:a").headers["location"] == "/gates/limit:a"
    assert "No gate is in use" in ops.get("/gates").text


@pytest.mark.parametrize("key", ["a/../b", "..", "a//b", "x\ny", "é?#%2e", "[", "/set"])
def test_any_key_of_a_lock_has_an_address(gated: LiveServer, key: str) -> None:
    task_id = submit(gated, "shop.keep", key=key)
    ops = web(gated, "admin")

    (link,) = re.findall(r'class="name" href="(/gates/[^"]+)"', ops.get("/gates").text)
    page = ops.get(link.replace("&#39;", "'"))

    assert page.status_code == 200
    assert f'href="/tasks/{task_id}"' in page.text
