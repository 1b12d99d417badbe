"""One attempt in a worker's hands: what it is, how long it may take, why it should stop.

The worker makes a `Run` for every claim, a runner (loop, threads, processes) brings it to an
`Outcome`. A run that was told to stop ends as that stop says, whatever its body still returns:
a body that catches the interruption and returns early has not done its work.

**Stopping** goes in steps. First the body is asked (`ctx.stop_requested`, `ctx.stopping`). One that
ever looked, or whose definition has a `stop_grace`, is then left alone for that long; the others
could not make use of it. After that the runner interrupts it, and kills it where it can. What
leaves with its worker was asked when the drain began, and what lost its lease has no time left:
both are interrupted at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol

from holdfast.core.attempt import Claim, Report
from holdfast.core.lifecycle import Outcome
from holdfast.core.task import Cost, Progress
from holdfast.definitions.context import Context
from holdfast.definitions.definition import Definition
from holdfast.definitions.steps import StepHost
from holdfast.definitions.stopping import Stopping
from holdfast.errors import AttemptTimeout, LeaseLost
from holdfast.worker.transactions import Completion, Transacting, TransactionHost


class StopReason(StrEnum):
    """Why a run is ended from outside."""

    CANCELLED = "cancelled"
    DRAINED = "drained"
    LOST = "lost"
    TIMED_OUT = "timed_out"


_AT_ONCE = frozenset({StopReason.DRAINED, StopReason.LOST})
_MAKING = threading.Lock()


class Run(Transacting):
    """One attempt, and the sink of its handler's context. Loop-thread only, but for the sink.

    `deadline` is in monotonic time and may move (`extend`). A runner looks at it again when it
    passes, and registers `on_stop` to hear when the body is to be interrupted, `on_extend` to hear
    of a new deadline (from whatever thread the handler runs in). Once `ended` is set nobody listens
    to it any more. `completion` is set from the moment its handler's transaction begins to commit.
    """

    __slots__ = (
        "_grace",
        "_reports",
        "_stopping",
        "deadline",
        "on_extend",
        "on_stop",
        "started",
        "stop_reason",
    )  # fmt: skip

    def __init__(
        self,
        claim: Claim,
        definition: Definition[..., Any, Any],
        deadline: float | None,
        reports: Callable[[Report], None],
        started: float = 0.0,
        host: TransactionHost | None = None,
        grace: float = 0.0,
        step_host: StepHost | None = None,
    ) -> None:
        self.claim = claim
        self.definition = definition
        self.deadline = deadline
        self.started = started
        self.stop_reason: StopReason | None = None
        self.on_stop: Callable[[StopReason], None] | None = None
        self.on_extend: Callable[[Run], None] | None = None
        self.ended = False
        self.completion = None
        self.follow_ups = None
        self._reports = reports
        self._host = host
        self._transaction = None
        self._step_host = step_host
        self._steps = None
        self.line = None
        self._stopping: Stopping | None = None
        self._grace = grace

    def context(self) -> Context:
        """What the handler knows of it, for whoever surrounds the run."""
        return Context(self.claim, self)

    @property
    def stopping(self) -> Stopping:
        """The request to stop; made when it is first needed, which may be in the body's thread."""
        made = self._stopping
        if made is None:
            with _MAKING:
                made = self._stopping
                if made is None:
                    made = self._stopping = Stopping()
        return made

    def stop(self, reason: StopReason) -> None:
        """End this run early: ask its body, and interrupt it when its grace is over. The first
        reason stands.
        """
        if self.stop_reason is None:
            self.stop_reason = reason
            self.stopping.ask()
            grace = 0.0 if reason in _AT_ONCE else self._grace_of_its_body()
            if grace > 0.0:
                asyncio.get_running_loop().call_later(grace, self._interrupt)
                return
        elif reason not in _AT_ONCE:
            return
        self._interrupt()

    def _grace_of_its_body(self) -> float:
        own = self.definition.stop_grace
        if own is not None:
            return own
        return self._grace if self.stopping.has_looked else 0.0

    def _interrupt(self) -> None:
        interrupt, self.on_stop = self.on_stop, None
        if interrupt is not None and self.stop_reason is not None and not self.ended:
            interrupt(self.stop_reason)

    def report(
        self, *, progress: Progress | None = None, cost: Cost | None = None, log: str | None = None
    ) -> None:
        if self.ended or self.completion is not None:
            return
        claim = self.claim
        logs = () if log is None else (log,)
        self._reports(Report(claim.task_id, claim.attempt, claim.worker_id, progress, cost, logs))

    def extend(self, seconds: float) -> None:
        """Move the deadline to `seconds` from now. A run without a timeout needs none."""
        if self.deadline is None:
            return
        self.deadline = time.monotonic() + seconds
        if self.on_extend is not None:
            self.on_extend(self)

    def is_late(self, now: float) -> bool:
        return self.deadline is not None and now > self.deadline

    def left_because_asked(self) -> bool:
        """Whether its body knows that its worker leaves: then it came out because of that."""
        return self.stop_reason is None and self._stopping is not None and self._stopping.has_seen

    def refuse_if_stopped(self) -> None:
        """A run that was told to stop ends as that stop says; its transaction cannot outvote it."""
        match self.stop_reason:
            case None if not self.ended:
                return
            case StopReason.TIMED_OUT:
                raise AttemptTimeout("the attempt ran out of time inside its transaction")
            case StopReason.LOST:
                raise LeaseLost(self.claim.task_id, self.claim.attempt)
            case _:
                raise asyncio.CancelledError("the attempt was stopped inside its transaction")

    async def hold_reports(self) -> None:
        """Its process is about to begin a transaction: keep back what it says from now on."""
        if self._host is not None:
            await self._host.reports.hold(self.claim)

    def let_go_of_reports(self) -> None:
        if self._host is not None:
            self._host.reports.let_go(self.claim)

    def was_completed(self) -> None:
        """Its process says that its transaction was committed."""
        self.completion = Completion(committed=True)
        if self._host is not None:
            self._host.completed(self.claim)


class Runner(Protocol):
    """Runs attempts in one kind of place."""

    async def run(self, run: Run) -> Outcome:
        """Bring the attempt to its end: in time, stopped, or dead.

        Never raises for a handler's fault.

        When this returns, the slot is free and, for processes, the body is really gone.
        """
        ...

    async def close(self) -> None:
        """Stop whatever still runs and let go of threads or processes."""
        ...
