"""Breakers with workers at work, on every store."""

from __future__ import annotations

import asyncio
import time

from tests.kit.at_work import Working

from holdfast import Breaker, Fatal, Holdfast, State, fixed
from holdfast.core.breaker import BREAKER, BreakerState
from holdfast.testing.eventually import eventually

COOL_DOWN = 2.0
QUICK = Breaker(failures=0.5, window="20s", at_least=5, cool_down=COOL_DOWN)


class Service:
    """What tasks call: it works, or it does not."""

    def __init__(self, *, works: bool) -> None:
        self.works = works
        self.calls = 0

    async def __call__(self, n: int) -> int:
        self.calls += 1
        if not self.works:
            raise ConnectionError("it is down")
        return n


async def state_of(app: Holdfast, name: str) -> BreakerState | None:
    found = await app.limit_async(name)
    return None if found is None else found.limit.state


async def test_it_opens_parks_tries_and_closes(app: Holdfast, working: Working) -> None:
    service = Service(works=False)

    @app.task(name="charge", breaker=QUICK, max_retries=1000, retry=fixed("100ms"))
    async def charge(n: int) -> int:
        return await service(n)

    name = "breaker:task:charge"
    handles = await app.submit_many_async([charge.call(n) for n in range(30)])
    async with working(2):
        await eventually(lambda: _is(app, name, BreakerState.OPEN), within=30)
        await eventually(lambda: _all_are(app, State.BLOCKED, 30), within=60)
        assert "breaker of task 'charge'" in (await app.why_async(handles[0])).sentence

        # Every cool-down one of them tries, and no more.
        before, began = service.calls, time.monotonic()
        await eventually(lambda: service.calls >= before + 2, within=60)
        assert service.calls - before <= 2 + (time.monotonic() - began) / COOL_DOWN
        service.works = True
        assert [await handle.result_async(timeout="60s") for handle in handles] == list(range(30))

    assert await app.client.store.records(BREAKER, limit=10) == []


async def test_while_nothing_fails_nothing_is_written_for_it(
    app: Holdfast, working: Working
) -> None:
    service = Service(works=True)

    @app.task(name="charge", breaker=QUICK)
    async def charge(n: int) -> int:
        return await service(n)

    async with working():
        handles = await app.submit_many_async([charge.call(n) for n in range(50)])
        for handle in handles:
            await handle.result_async(timeout="30s")
        await asyncio.sleep(1.2)  # as long as it takes to write counts, if there were any to write
        assert await app.client.store.records(BREAKER, limit=10) == []


async def test_keys_break_apart_and_errors_of_the_task_itself_do_not_count(
    app: Holdfast, working: Working
) -> None:
    @app.task(
        name="charge",
        breaker=Breaker(at_least=5, window="20s", cool_down="60s", key="{bank}"),
        max_retries=1000,
        retry=fixed("100ms"),
    )
    async def charge(bank: str) -> str:
        if bank == "down":
            raise ConnectionError(bank)
        if bank == "wrong":
            raise Fatal("no such account")
        return bank

    async with working():
        await app.submit_many_async([charge.call("down")] * 10 + [charge.call("wrong")] * 10)
        await eventually(
            lambda: _is(app, "breaker:task:charge[down]", BreakerState.OPEN), within=30
        )
        up = await charge.submit_async("up")
        assert await up.result_async(timeout="30s") == "up"
        await eventually(lambda: _all_are(app, State.FAILED, 10), within=30)
        await eventually(lambda: _all_are(app, State.BLOCKED, 10), within=30)

    assert await state_of(app, "breaker:task:charge[wrong]") is None


async def test_an_operator_opens_it_closes_it_and_takes_that_back(
    app: Holdfast, working: Working
) -> None:
    service = Service(works=True)

    @app.task(name="charge", breaker=QUICK, max_retries=1000, retry=fixed("100ms"))
    async def charge(n: int) -> int:
        return await service(n)

    name = "breaker:task:charge"
    assert (await app.set_limit_async(name, "open")).changed
    async with working():
        handle = await charge.submit_async(1)
        assert await handle.status_async() is State.BLOCKED
        assert not (await app.set_limit_async(name, "open")).changed

        assert (await app.set_limit_async(name, "closed")).changed
        assert await handle.result_async(timeout="30s") == 1
        assert await state_of(app, name) is BreakerState.CLOSED

        service.works = False
        await app.submit_many_async([charge.call(n) for n in range(10)])
        await eventually(lambda: service.calls > 60, within=30)  # kept closed, it lets all fail
        assert await state_of(app, name) is BreakerState.CLOSED

        await app.unset_limit_async(name)
        await eventually(lambda: _is(app, name, BreakerState.OPEN), within=30)


async def test_of_what_was_ready_when_it_opened_nothing_burns_a_retry(
    app: Holdfast, working: Working
) -> None:
    """They passed the gate before it closed; workers hand them back to it."""
    service = Service(works=False)

    @app.task(name="charge", breaker=QUICK, max_retries=0)
    async def charge(n: int) -> int:
        await asyncio.sleep(0.3)
        return await service(n)

    await app.submit_many_async([charge.call(n) for n in range(200)])
    async with working(2, concurrency=5):
        await eventually(lambda: _is(app, "breaker:task:charge", BreakerState.OPEN), within=30)
        service.works = True
        await eventually(lambda: _none_waits(app), within=90)

    dead = await app.count_async(state="dead_letter")
    assert dead < 100
    assert await app.count_async(state="completed") == 200 - dead


async def _none_waits(app: Holdfast) -> bool:
    return not await app.count_async(state=["queued", "running", "retrying", "blocked"], limit=1)


async def _is(app: Holdfast, name: str, state: BreakerState) -> bool:
    return await state_of(app, name) is state


async def _all_are(app: Holdfast, state: State, number: int) -> bool:
    return await app.count_async(state=state) == number
