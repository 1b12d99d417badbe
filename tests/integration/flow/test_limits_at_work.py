"""Limits, rates and shares with workers at work, on every store."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest
from tests.kit.at_work import Working

from holdfast import Fair, Holdfast, InvalidOption, Limit, Rate, State
from holdfast.core.breaker import BreakerState
from holdfast.testing.eventually import eventually


async def starts_of(app: Holdfast, *names: str) -> list[tuple[datetime, str]]:
    """When the attempts of these tasks started, by the store's clock."""
    found = []
    for task in (await app.list_async(limit=1000)).tasks:
        if task.name in names:
            history = await app.history_async(task.id)
            found += [(attempt.started_at, task.id) for attempt in history.attempts]
    return sorted(found)


async def is_empty(app: Holdfast) -> bool:
    return not await app.count_async(state=["queued", "running", "retrying", "blocked"], limit=1)


async def test_no_more_of_a_key_run_at_a_time_than_its_limit(
    app: Holdfast, working: Working
) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    @app.task(name="send", concurrency=[Limit(2, key="{tenant}"), Limit(5, name="all")])
    async def send(tenant: str, n: int) -> None:
        for key in (tenant, "all"):
            running[key] += 1
            most[key] = max(most[key], running[key])
        await asyncio.sleep(0.01)
        for key in (tenant, "all"):
            running[key] -= 1

    await app.submit_many_async([send.call("abc"[n % 3], n) for n in range(60)])
    async with working(2):
        await eventually(lambda: is_empty(app), within=60)

    assert await app.count_async(state="completed") == 60
    assert {key: n <= 2 for key, n in most.items() if key != "all"} == dict.fromkeys("abc", True)
    assert 2 < most["all"] <= 5
    assert (await app.limits_async()).limits == ()


async def test_a_raised_limit_lets_those_who_wait_flow_at_once(
    app: Holdfast, working: Working
) -> None:
    go_on = asyncio.Event()
    started: list[int] = []

    @app.task(name="send", concurrency=1)
    async def send(n: int) -> None:
        started.append(n)
        await go_on.wait()

    handles = await app.submit_many_async([send.call(n) for n in range(4)])
    async with working():
        await eventually(lambda: len(started) == 1)
        found = await app.limit_async("limit:task:send")
        assert found is not None
        assert (found.limit.capacity, found.limit.held, found.limit.waiting) == (1, 1, 3)
        assert (found.holders, found.waiters) == (
            (handles[0].id,),
            tuple(handle.id for handle in handles[1:]),
        )

        done = await app.set_limit_async("limit:task:send", 3)
        assert (done.capacity, done.changed, done.known) == (3, True, True)
        await eventually(lambda: len(started) == 3)
        assert not (await app.set_limit_async("limit:task:send", 3)).changed

        go_on.set()
        await eventually(lambda: is_empty(app))

    (kept,) = (await app.limits_async()).limits
    assert (kept.name, kept.capacity, kept.is_set) == ("limit:task:send", 3, True)
    assert (await app.unset_limit_async("limit:task:send")).changed
    assert not (await app.unset_limit_async("limit:task:send")).changed
    assert (await app.limits_async()).limits == ()


async def test_what_was_set_outlives_the_process(app: Holdfast, url: str) -> None:
    if url == "memory://":
        pytest.skip("memory:// outlives nothing")
    assert not (await app.set_limit_async("limit:stripe", 1)).known

    other = Holdfast(url=url)

    @other.task(name="pay", concurrency=Limit(5, name="stripe"))
    async def pay() -> None: ...

    async with other:
        handles = [await pay.submit_async() for _ in range(2)]
        assert [await handle.status_async() for handle in handles] == [State.QUEUED, State.BLOCKED]


async def test_there_are_never_more_starts_in_a_period_than_its_rate(
    app: Holdfast, working: Working
) -> None:
    @app.task(name="call", rate=Rate(4, per="1s", key="{host}"))
    async def call(host: str) -> None: ...

    await app.submit_many_async([call.call("a")] * 12)
    async with working(2, poll="100ms"):
        await eventually(lambda: is_empty(app), within=30)

    starts = [at for at, _ in await starts_of(app, "call")]
    assert len(starts) == 12
    for first in starts:
        assert sum(first <= at < first + timedelta(seconds=1) for at in starts) <= 4


async def test_a_tenants_first_task_does_not_wait_for_another_tenants_backlog(
    app: Holdfast, working: Working
) -> None:
    started: list[str] = []

    @app.task(name="render", fair_by=Fair("{tenant}", window=20))  # more than run at a time
    async def render(tenant: str) -> None:
        started.append(tenant)
        await asyncio.sleep(0.05)  # so that none are claimed in advance

    await app.submit_many_async([render.call("big")] * 100)
    async with working(concurrency=4):
        await eventually(lambda: len(started) > 8)
        small = await render.submit_async("small")
        before = len(started)
        await small.result_async(timeout="30s")

    assert started.index("small") - before <= 30


async def test_a_queue_is_bounded_whatever_runs_in_it(app: Holdfast, working: Working) -> None:
    running, most = 0, 0
    app.queue("mail", concurrency=2)

    async def body() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    tasks = [app.task(name=name, queue="mail")(body) for name in ("a", "b")]
    await app.submit_many_async([tasks[n % 2].call() for n in range(20)])
    async with working(queues="mail"):
        await eventually(lambda: is_empty(app), within=30)

    assert most == 2


async def test_limits_are_listed_by_name_page_by_page(app: Holdfast) -> None:
    @app.task(name="send", concurrency=1, rate=Rate(5), fair_by="{tenant}", lock="{tenant}")
    async def send(tenant: str) -> None: ...

    for tenant in ("a", "b"):
        await send.submit_async(tenant)
    await app.set_limit_async("breaker:stripe", "open")

    first = await app.limits_async(limit=3)
    rest = await app.limits_async(limit=3, after=first.next or "")

    assert [each.name for each in (*first.limits, *rest.limits)] == [
        "breaker:stripe",
        "limit:task:send",
        "rate:task:send",
        "share:task:send[a]",
    ]
    assert first.limits[0].state is BreakerState.OPEN
    assert (rest.limits[0].name, rest.next) == ("share:task:send[a]", None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("send", 5, "name: expected the name of a breaker, limit, rate, share as it is shown"),
        ("lock:doc", 5, "name: expected the name of"),
        ("limit:a", -1, "value: expected a whole number"),
        ("limit:a", "open", "value: expected a whole number"),
        ("breaker:a", 0, "value: a breaker is set 'open' or 'closed'"),
    ],
)
async def test_what_cannot_be_set_is_refused(name: str, value: int | str, said: str) -> None:
    async with Holdfast(url="memory://") as app:
        with pytest.raises(InvalidOption, match=said):
            await app.set_limit_async(name, value)
        assert (await app.limits_async()).limits == ()
