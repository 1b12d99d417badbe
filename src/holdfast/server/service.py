"""What the routes share: the app's client, its numbers, and how tasks are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from holdfast.app import Holdfast
from holdfast.assistant.assistant import Assistant
from holdfast.client import Client
from holdfast.core.task import Json, Task
from holdfast.core.task_answers import TASK, BriefTask
from holdfast.core.token import Scope, Token
from holdfast.errors import StoreUnavailable
from holdfast.metrics.fleet import Fleet, read_fleet
from holdfast.server.brake import Brake
from holdfast.server.limits import Windows
from holdfast.server.numbers import Gauge, Remembered
from holdfast.server.submission import Submissions
from holdfast.server.timer_calls import TimerCalls
from holdfast.server.watching import Watches
from holdfast.timers.arming import Fire
from holdfast.views import TaskView


class Service:
    """One served app. `request.app.state.service` in a route."""

    def __init__(self, holdfast: Holdfast, execute: Fire | None = None) -> None:
        self.holdfast = holdfast
        self.settings = holdfast.settings
        self.gauge = Gauge()
        self._fleet = Remembered[Fleet]()
        self.readiness = Remembered[Mapping[str, Json]]()
        """Kept for a second: nobody can make the store busy from outside."""
        self.watches = Watches()
        self.brake = Brake()
        """One for all ways in: whoever fails at one is slowed at every other."""
        self.windows = Windows(rate=holdfast.settings.rate_limit)
        self.submissions = Submissions(holdfast.registry, holdfast.settings)
        self.timer_calls = TimerCalls(holdfast.settings)
        self.execute = execute or holdfast.wake_ups.execute
        """Does what is due under the key that a timer called with."""
        self.away: str | None = None
        """Why nothing can be asked of the store yet, while somebody else tries to open it."""

    async def verbs(self) -> Client:
        """The client, its store open. The store may come up later than the server."""
        if self.away is not None:
            raise StoreUnavailable(self.away)
        return await self.holdfast.verbs()

    async def assistant(self) -> Assistant:
        """The assistant, its store open."""
        await self.verbs()
        return await self.holdfast.assistant.verbs()

    async def fleet(self) -> Fleet:
        """The whole fleet in numbers, a second old at most."""
        client = await self.verbs()

        async def read() -> Fleet:
            stats, workers = await self.gauge.numbers(client)
            return await read_fleet(client.store, stats, workers)

        return await self._fleet.get(read)

    async def now(self) -> datetime:
        """The time by the store's clock."""
        return await (await self.verbs()).now()

    async def check(self, text: str) -> Token | None:
        """The token that a request came with, if it holds."""
        return await (await self.verbs()).tokens.check(text)

    async def good(self, token_ids: Collection[str]) -> Collection[str]:
        """Those of the tokens that hold, whoever may have revoked them since."""
        return await (await self.verbs()).tokens.good(token_ids)

    async def shown(self, token: Token, task: Task) -> Json:
        """A task for whoever has this token: all of it to those who may read."""
        if not token.may(Scope.READ):
            return TASK.pick(task, *BriefTask.__annotations__)
        return (await self.view()).task(task)

    async def view(self, *, with_traceback: bool = False) -> TaskView:
        """How tasks are shown now."""
        return await TaskView.of(await self.verbs(), with_traceback=with_traceback)
