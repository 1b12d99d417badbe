"""Calls that travel with the commit that brings the work, instead of by a message of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.app import Holdfast
from holdfast.definitions.options import SubmitKeywords
from holdfast.testing.eventually import eventually

Connection = asyncpg.Connection


@pytest.fixture
async def app(fresh_database: str) -> AsyncIterator[Holdfast]:
    app = Holdfast(url=fresh_database)
    app.task(name="noop")(noop)
    await app.migrate_async()
    yield app
    await app.close_async()


async def noop(n: int) -> int:
    return n


@pytest.fixture
async def heard(app: Holdfast, fresh_database: str) -> AsyncIterator[list[str]]:
    """Every call on the channel; somebody sleeps for the queue `default`."""
    calls: list[str] = []
    connection = await asyncpg.connect(fresh_database)
    await connection.add_listener("holdfast", lambda *call: calls.append(str(call[3])))
    await connection.execute("SELECT holdfast.sleep('somebody', '{default}', 60)")
    yield calls
    await connection.close()


def dispatch_threads() -> int:
    return sum(thread.name == "holdfast-dispatch" for thread in threading.enumerate())


async def test_a_single_submit_calls_by_its_own_commit(app: Holdfast, heard: list[str]) -> None:
    before = dispatch_threads()

    await app.registry["noop"].submit_async(1)

    await eventually(lambda: heard == ["default"])
    assert dispatch_threads() == before, "no connection for calls was needed"


@pytest.mark.parametrize("options", [{"lock": "a"}, {"unique_key": "u"}, {"tags": ["x"]}])
async def test_so_does_one_with_a_key_a_lock_or_tags(
    app: Holdfast, heard: list[str], options: SubmitKeywords
) -> None:
    before = dispatch_threads()

    await app.registry["noop"].options(**options).submit_async(1)

    await eventually(lambda: heard == ["default"])
    assert dispatch_threads() == before


async def test_a_queue_that_nobody_sleeps_for_is_not_called(
    app: Holdfast, heard: list[str]
) -> None:
    await app.registry["noop"].options(queue="mail").submit_async(1)
    await asyncio.sleep(0.01)  # the next may ride along again
    await app.registry["noop"].submit_async(1)

    await eventually(lambda: heard == ["default"])


async def test_a_burst_of_submits_does_not_call_with_every_commit(
    app: Holdfast, heard: list[str]
) -> None:
    began = time.monotonic()
    for n in range(300):
        await app.registry["noop"].submit_async(n)
    took = time.monotonic() - began

    await eventually(lambda: bool(heard))
    assert len(heard) <= took / 0.003 + 2


async def test_the_last_of_a_burst_is_called_for_too(app: Holdfast, heard: list[str]) -> None:
    await app.registry["noop"].submit_async(1)
    await app.registry["noop"].submit_async(2)  # too soon to call by itself

    await eventually(lambda: len(heard) == 2)


async def test_what_a_process_that_ends_has_not_called_for_it_calls_for_at_last(
    app: Holdfast, heard: list[str]
) -> None:
    await app.registry["noop"].submit_async(1)
    await app.registry["noop"].submit_async(2)
    await app.close_async()

    await eventually(lambda: len(heard) == 2)
