"""Wake-ups by LISTEN/NOTIFY. Each dispatcher here stands for a process: it has its own connection,
thread and ears, and meets the others only in the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest
from tests.kit.servers.pgbouncer import PgBouncer
from tests.kit.servers.postgres import PostgresServer

from holdfast.dispatch import sleepers as by_registering
from holdfast.dispatch.postgres.dispatcher import PostgresDispatcher
from holdfast.ports.dispatcher import Listener
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.eventually import eventually

Dispatch = Callable[..., PostgresDispatcher]
Connection = asyncpg.Connection
LOOKS = (0.005, 0.02, 0.1)


@pytest.fixture
async def database(fresh_database: str) -> str:
    await set_up(fresh_database)
    return fresh_database


@pytest.fixture
async def dispatch(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dispatch]:
    monkeypatch.setattr(
        by_registering, "REPEATS", LOOKS
    )  # the last, after 0.5 s, is for slow commits
    made: list[PostgresDispatcher] = []

    def make(url: str = database) -> PostgresDispatcher:
        made.append(PostgresDispatcher(url))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.close()


@pytest.fixture
async def db(database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def set_up(url: str) -> None:
    """The schema, as the store makes it."""
    await PostgresStore(url).migrate()


async def asleep(dispatcher: PostgresDispatcher, listener: Listener) -> None:
    """Bring a listener to where it only wakes when it is called."""
    assert await dispatcher.mode() == "listen"
    while await listener.wait(0.2):  # at first, after registering, and the looks after that
        pass


async def sleepers(db: Connection) -> list[str]:
    rows = await db.fetch("SELECT queue FROM holdfast.sleeper ORDER BY queue")
    return [row["queue"] for row in rows]


class Overheard:
    """Every call on the channel, as anybody could hear it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def listen(self, db: Connection) -> None:
        await db.add_listener("holdfast", lambda *call: self.calls.append(str(call[3])))


async def test_a_sleeper_in_another_process_is_woken(dispatch: Dispatch) -> None:
    here, there = dispatch(), dispatch()
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)
        started = time.monotonic()

        here.wake({"mail"})

        assert await listener.wait(20)
        assert time.monotonic() - started < 5


async def test_only_those_who_hear_the_queue_are_woken(dispatch: Dispatch) -> None:
    here, there = dispatch(), dispatch()
    async with (
        there.listen(["mail"]) as mail,
        there.listen(["images"]) as images,
        there.listen(None) as every,
    ):
        for listener in (mail, images, every):
            await asleep(there, listener)

        here.wake({"images"})

        assert await images.wait(20)
        assert await every.wait(20)
        assert not await mail.wait(0.001)


async def test_a_listener_registers_before_it_sleeps_and_looks_once_more(
    dispatch: Dispatch, db: Connection
) -> None:
    there = dispatch()
    async with there.listen(["mail", "images"]) as listener:
        await asleep(there, listener)
        await eventually(lambda: nobody_sleeps(db))  # it seems to be busy

        looked_at = [await timed(listener.wait(5)) for _ in range(1 + len(LOOKS))]

        assert await sleepers(db) == ["images", "mail"]
        assert all(woken for woken, _ in looked_at)
        for (_, seconds), pause in zip(looked_at, (0, *LOOKS), strict=True):
            assert seconds >= pause * 0.9
        assert not await listener.wait(0.01)


async def test_nobody_is_called_while_nobody_sleeps(dispatch: Dispatch, db: Connection) -> None:
    overheard = Overheard()
    await overheard.listen(db)
    here, there = dispatch(), dispatch()
    async with there.listen(["mail"]) as listener:
        here.wake({"mail"})
        await here.close()
        assert overheard.calls == []

        await asleep(there, listener)
        dispatch().wake({"mail", "nobody-listens-here"})

        assert await listener.wait(20)
        await eventually(lambda: overheard.calls == ["mail"])


async def test_many_wake_ups_become_few_calls(dispatch: Dispatch, db: Connection) -> None:
    overheard = Overheard()
    await overheard.listen(db)
    here, there = dispatch(), dispatch()
    assert await here.mode() == "listen"
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)
        woken = asyncio.create_task(listener.wait(20))
        await asyncio.sleep(0)
        started = time.monotonic()

        for _ in range(2000):
            here.wake({"mail"})
            await asyncio.sleep(0)

        elapsed = time.monotonic() - started
        await here.close()
        assert await woken
        await eventually(lambda: overheard.calls)
        assert len(overheard.calls) <= elapsed / 0.003 + 2


async def test_a_busy_process_is_taken_off_the_list(dispatch: Dispatch, db: Connection) -> None:
    there = dispatch()
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)
        assert await sleepers(db) == ["mail"]

        await eventually(lambda: nobody_sleeps(db))

        assert await listener.wait(20), "it must register again, and look"
        assert await sleepers(db) == ["mail"]


async def test_a_process_that_died_asleep_is_called_no_longer_than_its_registration(
    dispatch: Dispatch, db: Connection
) -> None:
    await db.execute(
        "INSERT INTO holdfast.sleeper VALUES ('dead', 'mail', clock_timestamp() - interval '1 s'),"
        " ('long-dead', 'mail', clock_timestamp() - interval '2 minutes')"
    )

    assert await db.fetchval("SELECT holdfast.wake('{mail}')") == 0

    there = dispatch()
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)
        rows = await db.fetch("SELECT process FROM holdfast.sleeper")
        assert "long-dead" not in {row["process"] for row in rows}


async def test_a_process_that_leaves_in_order_is_off_the_list(
    dispatch: Dispatch, db: Connection
) -> None:
    there = dispatch()
    async with there.listen(None) as listener:
        await asleep(there, listener)
        assert await sleepers(db) == [""]

    await there.close()

    assert await sleepers(db) == []


async def test_a_task_submitted_in_sql_wakes_a_sleeper_at_commit(
    dispatch: Dispatch, db: Connection
) -> None:
    there = dispatch()
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)

        async with db.transaction():
            await db.execute("SELECT holdfast.submit('send', '{}', queue => 'mail')")
            assert not await listener.wait(0.05)

        assert await listener.wait(20)


async def test_the_last_wake_up_of_a_process_that_ends_is_not_lost(dispatch: Dispatch) -> None:
    there, here = dispatch(), dispatch()
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)

        here.wake({"mail"})
        await here.close()

        assert await listener.wait(20)


async def test_after_a_break_every_listener_looks_once_and_calls_go_through_again(
    dispatch: Dispatch, postgres: PostgresServer, db: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    here, there = dispatch(), dispatch()
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)
        assert await here.mode() == "listen"

        await db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

        assert await listener.wait(20), "what was submitted meanwhile must be found"
        await asleep(there, listener)
        await eventually(lambda: listening(here))
        here.wake({"mail"})
        assert await listener.wait(20)
    assert len([r for r in caplog.records if "dispatch.lost" in r.getMessage()]) == 2


async def test_while_the_server_is_away_waiting_is_polling(
    own_postgres: PostgresServer, dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = own_postgres.create_database("shop")
    await set_up(url)
    there = dispatch(url)
    async with there.listen(["mail"]) as listener:
        await asleep(there, listener)

        own_postgres.stop("immediate")
        await eventually(lambda: polling(there))
        await listener.wait(0.01)
        woken, seconds = await timed(listener.wait(0.2))
        assert (woken, seconds >= 0.19) == (False, True)
        there.wake({"mail"})
        assert await listener.wait(0.2), "this process needs no server to wake itself"

        own_postgres.start()
        assert await listener.wait(20), "back again: look at once"
        await asleep(there, listener)
    lost = [r for r in caplog.records if "dispatch.lost" in r.getMessage()]
    assert len(lost) == 1


async def test_through_a_pooler_it_polls_and_still_calls_others(
    dispatch: Dispatch, postgres: PostgresServer, database: str
) -> None:
    name = database.rpartition("/")[2].partition("?")[0]
    with PgBouncer(postgres, size=2) as bouncer:
        pooled, direct = dispatch(bouncer.url(name)), dispatch()
        async with direct.listen(["mail"]) as heard, pooled.listen(["mail"]) as deaf:
            await asleep(direct, heard)
            assert await pooled.mode() == "poll"
            await deaf.wait(0.01)
            assert not await deaf.wait(0.05)

            pooled.wake({"mail"})

            assert await heard.wait(20)
        await pooled.close()


async def timed(waiting: object) -> tuple[bool, float]:
    started = time.monotonic()
    woken = await waiting  # type: ignore[misc] # an awaitable
    return bool(woken), time.monotonic() - started


async def nobody_sleeps(db: Connection) -> bool:
    return not await sleepers(db)


async def listening(dispatcher: PostgresDispatcher) -> bool:
    return await dispatcher.mode() == "listen"


async def polling(dispatcher: PostgresDispatcher) -> bool:
    return await dispatcher.mode() == "poll"
