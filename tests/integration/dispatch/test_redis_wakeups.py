"""Wake-ups through Redis. Each dispatcher here stands for a process: it has its own connection,
thread and ears, and meets the others only in Redis.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from tests.integration.dispatch.redis_kit import PollingDispatcher
from tests.kit.servers.redis import RedisServer

from holdfast.dispatch.redis.dispatcher import RedisDispatcher
from holdfast.ports.dispatcher import EVERYBODY, Listener
from holdfast.testing.eventually import eventually

Dispatch = Callable[..., RedisDispatcher]
LONG = 20.0


@pytest.fixture
def store() -> str:
    return secrets.token_hex(4)


@pytest.fixture
async def dispatch(redis_server: RedisServer, store: str) -> AsyncIterator[Dispatch]:
    made: list[RedisDispatcher] = []

    async def name() -> str:
        return store

    def make(url: str = redis_server.url) -> RedisDispatcher:
        made.append(RedisDispatcher(url, store=name, fallback=PollingDispatcher()))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.close()


class Sleeper:
    """A listener that sleeps until it is called, and counts how often it was."""

    def __init__(self, listener: Listener) -> None:
        self.calls = 0
        self._listener = listener
        self._waiting: asyncio.Task[bool] | None = None

    async def tire(self) -> None:
        """Look often enough to sleep."""
        while await self._listener.wait(0.01):
            pass

    def lie_down(self) -> None:
        self._waiting = asyncio.ensure_future(self._listener.wait(LONG))
        self._waiting.add_done_callback(self._count)

    def _count(self, waiting: asyncio.Task[bool]) -> None:
        self.calls += not waiting.cancelled() and waiting.result()

    async def get_up(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait({self._waiting})


class Dormitory:
    """Many sleepers, all of them asleep."""

    def __init__(self, server: RedisServer, store: str) -> None:
        self._server = server
        self._store = store
        self._stack = AsyncExitStack()
        self.sleepers: list[Sleeper] = []

    async def add(self, dispatcher: RedisDispatcher, queues: list[str] | None) -> Sleeper:
        listener = await self._stack.enter_async_context(dispatcher.listen(queues))
        sleeper = Sleeper(listener)
        await sleeper.tire()
        await eventually(lambda: self.asleep() == len(self.sleepers))
        sleeper.lie_down()
        self.sleepers.append(sleeper)
        await eventually(lambda: self.asleep() == len(self.sleepers))
        return sleeper

    def asleep(self) -> int:
        return int(str(self._server.command("ZCARD", f"holdfast:{{{self._store}}}:until")))

    @property
    def calls(self) -> int:
        return sum(sleeper.calls for sleeper in self.sleepers)

    async def close(self) -> None:
        for sleeper in self.sleepers:
            await sleeper.get_up()
        await self._stack.aclose()


@pytest.fixture
async def dormitory(redis_server: RedisServer, store: str) -> AsyncIterator[Dormitory]:
    dormitory = Dormitory(redis_server, store)
    yield dormitory
    await dormitory.close()


async def test_a_sleeper_in_another_process_is_woken(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    here, there = dispatch(), dispatch()
    sleeper = await dormitory.add(there, ["mail"])
    assert await here.mode() == "redis"
    began = time.monotonic()

    here.wake({"mail": 1})

    await eventually(lambda: sleeper.calls == 1, every=0.001)
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("tasks", [1, 3, 8])
async def test_as_many_are_woken_as_there_are_tasks(
    dispatch: Dispatch, dormitory: Dormitory, tasks: int
) -> None:
    here = dispatch()
    for _ in range(4):
        there = dispatch()
        await dormitory.add(there, ["mail"])
        await dormitory.add(there, None)

    here.wake({"mail": tasks})
    await here.close()

    await eventually(lambda: dormitory.calls == tasks)
    await asyncio.sleep(0.1)
    assert (dormitory.calls, dormitory.asleep()) == (tasks, 8 - tasks)


async def test_those_who_have_slept_longest_are_woken_first(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    first = await dormitory.add(dispatch(), None)
    second = await dormitory.add(dispatch(), ["mail"])
    third = await dormitory.add(dispatch(), ["mail", "films"])
    here = dispatch()

    for expected in ([1, 0, 0], [1, 1, 0], [1, 1, 1]):
        here.wake({"mail": 1})

        await eventually(lambda: dormitory.calls == sum(expected))  # noqa: B023 - called here
        assert [first.calls, second.calls, third.calls] == expected


async def test_only_those_who_hear_the_queue_are_woken(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    mail = await dormitory.add(dispatch(), ["mail"])
    films = await dormitory.add(dispatch(), ["films", "songs"])
    every = await dormitory.add(dispatch(), None)

    dispatch().wake({"films": EVERYBODY, "nobody-listens-here": 1})

    await eventually(lambda: films.calls and every.calls)
    await asyncio.sleep(0.05)
    assert mail.calls == 0


async def test_a_listener_to_two_queues_is_called_once(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    both = await dormitory.add(dispatch(), ["mail", "films"])
    other = await dormitory.add(dispatch(), ["films"])

    dispatch().wake({"mail": 1, "films": 1})

    await eventually(lambda: (both.calls, other.calls) == (1, 1))


async def test_a_call_for_which_nobody_slept_sends_the_next_sleeper_to_look(
    dispatch: Dispatch,
) -> None:
    here, there = dispatch(), dispatch()
    async with there.listen(["mail"]) as mail, there.listen(["films"]) as films:
        for listener in (mail, films):
            while await listener.wait(0.01):
                pass
        # Both claim now, and find nothing. Then a task is stored, and nobody sleeps.
        here.wake({"mail": 1})
        await here.close()

        began = time.monotonic()
        assert await mail.wait(LONG), "it must look once more"
        assert time.monotonic() - began < LONG / 2
        assert not await mail.wait(0.05), "once is enough"
        assert not await films.wait(0.05), "that was not for this one"


async def test_who_was_called_in_full_sends_nobody_else_to_look(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    here, there = dispatch(), dispatch()
    await dormitory.add(dispatch(), ["mail"])
    async with there.listen(["mail"]) as busy:
        while await busy.wait(0.01):
            pass

        here.wake({"mail": 1})
        await eventually(lambda: dormitory.calls == 1)

        assert not await busy.wait(0.05), "another one has that task in hand"


async def test_nothing_piles_up_while_nobody_sleeps(
    dispatch: Dispatch, redis_server: RedisServer, store: str
) -> None:
    here = dispatch()

    for n in range(500):
        here.wake({f"queue-{n % 5}": 3})
        await asyncio.sleep(0)
    await here.close()

    stem = f"holdfast:{{{store}}}:turn"
    assert redis_server.keys(f"holdfast:{{{store}}}*") == [
        stem, *(f"{stem}:queue-{n}" for n in range(5))
    ]  # fmt: skip


async def test_a_queue_that_is_called_no_more_is_forgotten_whatever_becomes_of_others(
    dispatch: Dispatch, redis_server: RedisServer, store: str
) -> None:
    here, stem = dispatch(), f"holdfast:{{{store}}}:turn"

    here.wake({"old": 1})
    await eventually(lambda: redis_server.keys(f"{stem}:old"))
    redis_server.command("PEXPIRE", f"{stem}:old", 200)
    here.wake({"new": 1})
    await eventually(lambda: redis_server.keys(f"{stem}:new"))

    await eventually(lambda: redis_server.keys(f"{stem}:*") == [f"{stem}:new"], within=2)


async def test_many_wake_ups_become_few_calls(dispatch: Dispatch, own_redis: RedisServer) -> None:
    here = dispatch(own_redis.url)  # nobody else calls there
    assert await here.mode() == "redis"
    before = calls_of(own_redis, "evalsha")
    began = time.monotonic()

    for _ in range(2000):
        here.wake({"mail": 1})
        await asyncio.sleep(0)
    took = time.monotonic() - began
    await here.close()

    assert 1 <= calls_of(own_redis, "evalsha") - before <= took / 0.005 + 4


async def test_a_process_that_died_asleep_is_passed_over(
    dispatch: Dispatch, dormitory: Dormitory, redis_server: RedisServer, store: str
) -> None:
    alive = await dormitory.add(dispatch(), ["mail"])
    stem = f"holdfast:{{{store}}}"
    now = int(time.time() * 1000)
    redis_server.command("ZADD", f"{stem}:until", now + 60_000, "dead/1")
    redis_server.command("ZADD", f"{stem}:asleep:mail", now - 60_000, "dead/1")

    dispatch().wake({"mail": 1})

    await eventually(lambda: alive.calls == 1)
    assert redis_server.command("ZSCORE", f"{stem}:until", "dead/1") is None


async def test_whoever_gets_up_by_itself_is_not_called(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    there = dispatch()
    async with there.listen(["mail"]) as listener:
        while await listener.wait(0.01):
            pass
        await eventually(lambda: dormitory.asleep() == 0)

        nap = asyncio.ensure_future(listener.wait(LONG))
        await eventually(lambda: dormitory.asleep() == 1)
        nap.cancel()

        await eventually(lambda: dormitory.asleep() == 0)


@pytest.mark.parametrize("has_heard", [True, False], ids=["heard", "on-the-way"])
async def test_whoever_is_called_and_leaves_passes_the_call_on(
    dispatch: Dispatch, dormitory: Dormitory, has_heard: bool
) -> None:
    """A worker that was asked to stop in that moment will not look."""
    here = dispatch()
    assert await here.mode() == "redis"
    async with dispatch().listen(["mail", "films"]) as leaving:
        while await leaving.wait(0.01):
            pass
        nap = asyncio.ensure_future(leaving.wait(LONG))
        await eventually(lambda: dormitory.asleep() == 1)
        async with dispatch().listen(["mail"]) as staying:
            while await staying.wait(0.01):
                pass
            waiting = asyncio.ensure_future(staying.wait(LONG))
            await eventually(lambda: dormitory.asleep() == 2)

            here.wake({"mail": 1})
            time.sleep(0.1)  # noqa: ASYNC251 - nothing is heard on this loop meanwhile
            nap.cancel()
            if has_heard:
                await asyncio.wait({nap})
                await asyncio.sleep(0.05)
            await leaving.close()  # type: ignore[attr-defined] # what leaving the context does

            assert await asyncio.wait_for(waiting, 5)


async def test_two_stores_on_one_redis_do_not_hear_each_other(
    dispatch: Dispatch, dormitory: Dormitory, redis_server: RedisServer
) -> None:
    sleeper = await dormitory.add(dispatch(), ["mail"])
    other = dispatch(f"{redis_server.url}?prefix=another-store")

    other.wake({"mail": EVERYBODY})
    await other.close()
    await asyncio.sleep(0.05)

    assert (sleeper.calls, dormitory.asleep()) == (0, 1)


async def test_the_last_wake_up_of_a_process_that_ends_is_not_lost(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    sleeper = await dormitory.add(dispatch(), ["mail"])
    here = dispatch()

    here.wake({"mail": 1})  # before it has even connected
    await here.close()

    await eventually(lambda: sleeper.calls == 1)


async def test_a_busy_event_loop_does_not_delay_calls_to_others(
    dispatch: Dispatch, dormitory: Dormitory
) -> None:
    sleeper = await dormitory.add(dispatch(), ["mail"])
    here = dispatch()
    assert await here.mode() == "redis"

    here.wake({"mail": 1})
    time.sleep(0.3)  # noqa: ASYNC251 - that is the point: nothing runs on this loop

    assert dormitory.asleep() == 0
    await eventually(lambda: sleeper.calls == 1)


async def test_no_task_is_slept_through(dispatch: Dispatch) -> None:
    """Four who take one at a time and sleep when there is none, at every moment that there is."""
    waiting: list[float] = []
    delays: list[float] = []
    over = asyncio.Event()

    async def work(dispatcher: RedisDispatcher) -> None:
        async with dispatcher.listen(["mail"]) as listener:
            while not over.is_set():
                await asyncio.sleep(0.001)  # a claim
                if waiting:
                    delays.append(time.monotonic() - waiting.pop(0))
                else:
                    await listener.wait(LONG)

    workers = [asyncio.ensure_future(work(dispatch())) for _ in range(4)]
    here, chance = dispatch(), random.Random(5)
    for _ in range(600):
        waiting.append(time.monotonic())
        here.wake({"mail": 1})
        await asyncio.sleep(chance.choice((0, 0.0005, 0.002, 0.006)))
    await eventually(lambda: len(delays) == 600)
    over.set()
    here.wake({"mail": EVERYBODY})
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)

    assert max(delays) < 2


async def test_a_sleeper_that_was_called_and_left_is_remembered_nowhere(
    dispatch: Dispatch, redis_server: RedisServer, store: str
) -> None:
    here, there = dispatch(), dispatch()
    for _ in range(3):
        async with there.listen(["mail", "films"]) as listener:
            while await listener.wait(0.01):
                pass
            waiting = asyncio.ensure_future(listener.wait(LONG))
            await eventually(lambda: redis_server.keys(f"holdfast:{{{store}}}:until"))

            here.wake({"mail": 1})
            assert await waiting

    await eventually(lambda: not redis_server.keys(f"holdfast:{{{store}}}:asleep*"))


async def test_all_keys_are_gone_or_will_be(
    dispatch: Dispatch, redis_server: RedisServer, store: str
) -> None:
    here, there = dispatch(), dispatch()
    async with there.listen(["mail", "films"]) as some, there.listen(None) as every:
        for listener in (some, every):
            await listener.wait(0.01)
            await listener.wait(0.01)
        here.wake({"mail": 5, "songs": 1})
        await some.wait(0.01)
    for dispatcher in (here, there):
        await dispatcher.close()

    for key in redis_server.keys(f"holdfast:{{{store}}}*"):
        left = redis_server.command("PTTL", key)
        assert isinstance(left, int)
        assert 0 < left <= 600_000, f"{key} would stay"


def calls_of(server: RedisServer, command: str) -> int:
    stats = str(server.command("INFO", "commandstats"))
    for line in stats.splitlines():
        if line.startswith(f"cmdstat_{command}:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0
