"""Holdfast itself, measured as its peers are: arguments validated, results stored."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers import bodies, driver
from holdfast.app import Holdfast, open_store
from holdfast.app_connection import AppConnection
from holdfast.core.task import State
from holdfast.dispatch.in_process import InProcessDispatcher

URL = driver.POSTGRES or driver.MONGO or f"sqlite:///{driver.SQLITE}/holdfast.db"

app = Holdfast(url=URL, redis_url=driver.REDIS or None)
if driver.WAKES == "poll":
    app.swap_connection(
        AppConnection(open_store(URL), InProcessDispatcher(), app.registry, app.settings)
    )
noop = app.task(name="noop")(bodies.async_noop)
stamp = app.task(name="stamp")(bodies.async_stamp)


class Queue(driver.Driver):
    async def install(self) -> None:
        await app.migrate_async()

    async def open(self) -> None:
        await app.open_async()
        await (await app.verbs()).stats()

    async def submit(self, count: int) -> None:
        for number in range(count):
            await noop.submit_async(number)

    async def bulk(self, numbers: Sequence[int]) -> None:
        await app.submit_many_async([noop.call(number) for number in numbers])

    async def send(self, sent: float) -> None:
        await stamp.submit_async(sent)

    async def finished(self) -> int:
        return (await (await app.verbs()).stats()).states[State.COMPLETED]

    async def mode(self) -> str:
        return await (await app.verbs()).dispatcher.mode()
