"""What a handler in a process of its own says to its worker, and its transactions.

The process opens a store of its own when a handler first asks for a transaction. The worker is told
before it begins, so that what it heard until then is stored first, and when it was committed, so
that it does not settle the attempt again. A process that dies in between has left the truth in the
store: the fence refuses the worker's other ending.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import asdict
from typing import Any, TypeVar

from holdfast.asyncio_tools.bridge import BRIDGE
from holdfast.core.attempt import Claim, Report
from holdfast.core.report import merged
from holdfast.ports.store import TransactionStore
from holdfast.worker.loading import LoadedApp
from holdfast.worker.processes.channel import Channel
from holdfast.worker.processes.interruption import Interruption
from holdfast.worker.processes.wire import (
    COMPLETED,
    COST,
    HELD,
    HOLD,
    LET_GO,
    LOG,
    PROGRESS,
    Frame,
    key_of,
)

T = TypeVar("T")


class ChildTransactionHost:
    """A `TransactionHost` and a `Holding`, at the other end of the line."""

    def __init__(self, app: LoadedApp, channel: Channel, interruption: Interruption) -> None:
        self._app = app
        self._channel = channel
        self._interruption = interruption
        self._is_holding = False
        self._held: Report | None = None
        self.reports = self

    async def store(self) -> TransactionStore:
        await self._app.open_async()
        store: TransactionStore = self._app.client.store
        return store

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        # Once begun it is finished: an interruption comes after it, or the worker's patience ends.
        self._channel.refuse_forks()
        with self._interruption.shielded():
            return BRIDGE.run(work)

    def completed(self, claim: Claim) -> None:
        self._channel.send(Frame(COMPLETED, None, about=key_of(claim)))

    async def hold(self, claim: Claim) -> None:
        answer = self._channel.ask(Frame(HOLD, None, about=key_of(claim)))
        if answer.kind != HELD:
            raise ConnectionError(f"the worker said {answer.kind!r}, which is no answer")
        self._is_holding = True

    def take(self, _claim: Claim) -> Report | None:
        held, self._held = self._held, None
        return held

    def put(self, report: Report) -> None:
        if self._is_holding:
            self._held = report if self._held is None else merged(self._held, report)
        else:
            self._tell(report)

    def let_go(self, claim: Claim) -> None:
        self._is_holding = False
        self._channel.send(Frame(LET_GO, None, about=key_of(claim)))
        if self._held is not None:
            self._tell(self._held)
            self._held = None

    def _tell(self, report: Report) -> None:
        about = key_of(report)
        if report.progress is not None:
            self._channel.send(Frame(PROGRESS, asdict(report.progress), about=about))
        if report.cost is not None:
            self._channel.send(Frame(COST, asdict(report.cost), about=about))
        for line in report.logs:
            self._channel.send(Frame(LOG, line, about=about))
