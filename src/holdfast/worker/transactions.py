"""`ctx.transaction()` on the worker's side: a handler's writes and its task's end in one commit.

From the moment a transaction begins to commit, the run has a `Completion`. Whoever concludes the
run waits for it: what was committed is not settled again, whatever the body does afterwards. If the
commit's answer was lost, the store is asked until it knows. Nothing is ever guessed.

A handler runs on the worker's loop, in a thread, or in a process of its own
(`processes/transactions.py`). The store's transaction lives on the loop of the handler; a sync one
borrows a loop for it.

What a handler reports (progress, cost, log lines) while it is inside is kept back and stored by the
same commit: on SQLite nobody else may write meanwhile, and afterwards the fence would refuse it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Claim, Report
from holdfast.core.lifecycle import Succeeded, settle
from holdfast.core.task import NewTask
from holdfast.definitions.definition import Definition
from holdfast.definitions.home import Home
from holdfast.definitions.steps import Line, StepHost, Steps
from holdfast.engine.judging import no_retry
from holdfast.errors import HoldfastError, StoreUnavailable, Unsupported
from holdfast.flow.bodies import as_child, waits_for_children
from holdfast.logs import EventLog
from holdfast.ports.store import Transaction, TransactionStore
from holdfast.worker.outage import Outage

log = EventLog("holdfast.worker")

T = TypeVar("T")

_NULL: Final = b"null"


class Holding(Protocol):
    """Keeps the reports of an attempt back while it is inside its transaction."""

    async def hold(self, claim: Claim) -> None: ...

    def take(self, claim: Claim) -> Report | None: ...

    def put(self, report: Report) -> None: ...

    def let_go(self, claim: Claim) -> None: ...


class TransactionHost(Protocol):
    """What a transaction needs of the place where its handler runs."""

    @property
    def reports(self) -> Holding: ...

    async def store(self) -> TransactionStore: ...

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from the thread of a sync handler."""
        ...

    def completed(self, claim: Claim) -> None:
        """This attempt's end is on disk. From any thread."""
        ...


class WorkerTransactionHost:
    """For handlers that run in the worker itself: on its loop, or in a thread."""

    def __init__(
        self,
        store: TransactionStore,
        loop: asyncio.AbstractEventLoop,
        reports: Holding,
        completed: Callable[[Claim], None],
    ) -> None:
        self.reports = reports
        self._store = store
        self._loop = loop
        self._completed = completed

    async def store(self) -> TransactionStore:
        return self._store

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def completed(self, claim: Claim) -> None:
        self._loop.call_soon_threadsafe(self._completed, claim)


class Completion:
    """Whether a run's transaction was committed: True, False, or None if nobody will ever know
    here, because the worker ends. Then the task is left as it is, for a rescuer to look at.
    """

    def __init__(self, committed: bool | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._known: Future[bool | None] = Future()
        if committed:
            self.known(committed)

    def known(self, committed: bool | None) -> None:
        self._known.set_result(committed)

    def unless_committed(self, settle: Callable[[], object]) -> None:
        """Call this, now or as soon as it is known, if the run has to be settled otherwise."""
        if self._known.done():
            if self._known.result() is False:
                settle()
        else:
            self._known.add_done_callback(
                lambda _: self._loop.call_soon_threadsafe(self.unless_committed, settle)
            )


class Transacting:
    """An attempt whose handler may complete it in a transaction, or have its steps recorded: in the
    worker, or in a child.
    """

    __slots__ = (
        "_host",
        "_step_host",
        "_steps",
        "_transaction",
        "claim",
        "completion",
        "definition",
        "ended",
        "follow_ups",
        "line",
    )

    claim: Claim
    definition: Definition[..., Any, Any]
    completion: Completion | None
    ended: bool
    follow_ups: list[NewTask] | None
    _host: TransactionHost | None
    _transaction: RunTransaction | None
    _step_host: StepHost | None
    _steps: Steps | None
    line: Line

    @property
    def steps(self) -> Steps:
        if self._steps is None:
            self._steps = Steps(self)
        return self._steps

    @property
    def step_host(self) -> StepHost:
        if self._step_host is None:
            raise Unsupported("durable steps work only where a worker, or `drain()`, runs the task")
        return self._step_host

    def follow_up(self, new: NewTask) -> None:
        """Store this task if and only if the attempt's success is."""
        if self.ended:
            raise HoldfastError(
                f"the attempt {self.claim.attempt} of task {self.claim.task_id} has ended: what it "
                "submits had to go with its end. Submit before the handler returns."
            )
        if self.follow_ups is None:
            self.follow_ups = []
        self.follow_ups.append(new)

    def child(self, new: NewTask) -> None:
        """The same for a child. Whoever claims the task again must know where to look."""
        if not self.definition.wants_context:
            raise HoldfastError(
                f"ctx.submit_child() works in handlers that take their context as a parameter: "
                f"write `def {self.definition.handler.__name__}(ctx: Context, …)`."
            )
        self.follow_up(as_child(new, self.claim.task_id))

    @property
    def home(self) -> Home:
        return self.definition.home

    def transaction(self) -> RunTransaction:
        if self._host is None:
            raise Unsupported(
                "ctx.transaction() works only where a worker runs the task, on a store in a "
                "database (sqlite:/// or postgresql://)."
            )
        if self._transaction is None:
            self._transaction = RunTransaction(self, self._host)
        return self._transaction

    def open_transaction(self) -> RunTransaction | None:
        return self._transaction if self._transaction and self._transaction.is_open else None

    def refuse_if_stopped(self) -> None:
        """Raise if the attempt was told to stop."""
        raise NotImplementedError


class RunTransaction:
    """The one transaction of a run, for `async with` and for `with`."""

    def __init__(self, run: Transacting, host: TransactionHost) -> None:
        self._run = run
        self._host = host
        self._result = _NULL
        self._opened: AbstractAsyncContextManager[object] | None = None
        self._is_blocking = False
        self.is_open = False

    def complete(self, result: Any) -> None:
        self._result = self._run.definition.dump_result(result)

    async def __aenter__(self) -> Any:
        return await self._entered(blocking=False)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._left(kind, error, trace)

    def __enter__(self) -> Any:
        if _has_running_loop():
            raise HoldfastError(
                "this handler is async: write `async with ctx.transaction() as conn`. A plain "
                "`with` would hold up the event loop."
            )
        return self._host.wait(self._entered(blocking=True))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._host.wait(self._left(kind, error, trace))

    async def _entered(self, *, blocking: bool) -> object:
        if self._run.completion is not None:
            raise HoldfastError(
                f"task {self._run.claim.task_id} was completed by its transaction already; there "
                "is one for each attempt. Submit another task for what comes after it."
            )
        if self._opened is not None:
            raise HoldfastError("the handler is inside its transaction already; use its connection")
        self._is_blocking = blocking
        opened = self._opened = self._open(blocking=blocking)
        try:
            connection = await opened.__aenter__()
        except BaseException:
            self._opened = None
            raise
        self.is_open = True
        return connection

    async def _left(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        opened, self._opened, self.is_open = self._opened, None, False
        assert opened is not None
        await opened.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _open(self, *, blocking: bool) -> AsyncIterator[object]:
        host, claim = self._host, self._run.claim
        self._result = _NULL
        transaction = (await host.store()).transaction(claim, blocking=blocking)
        await host.reports.hold(claim)
        try:
            async with transaction as inside:
                yield inside.connection
                await to_the_end(self._commit(inside))
        finally:
            host.reports.let_go(claim)

    async def _add_follow_ups(self, inside: Transaction) -> None:
        """What the handler submitted through its context goes into the same commit."""
        tasks = self._run.follow_ups
        if not tasks:
            return
        store, connection = await self._host.store(), inside.connection
        window = self._run.definition.home.settings.idempotency_window
        if self._is_blocking:
            await asyncio.to_thread(store.add_within, connection, tasks, idempotency_window=window)
        else:
            await store.add_within_async(connection, tasks, idempotency_window=window)

    def _refuse_children(self) -> None:
        if waits_for_children(self._run.claim, self._run.follow_ups or ()):
            raise HoldfastError(
                "a task that has children ends after them, so its transaction cannot complete it: "
                "write through a connection of your own instead."
            )

    async def _commit(self, inside: Transaction) -> None:
        self._run.refuse_if_stopped()
        self._refuse_children()
        claim, host = self._run.claim, self._host
        settlement = settle(claim, Succeeded(self._result), backoff=no_retry, crash_limit=1)
        await self._add_follow_ups(inside)
        completion = self._run.completion = Completion()
        committed: bool | None = None
        report = host.reports.take(claim)
        try:
            try:
                await inside.complete(settlement, report)
                committed = True
            except StoreUnavailable as error:
                committed = await _find_out(inside, claim, error)
                if not committed:
                    raise
            except Exception:
                committed = False
                raise
        finally:
            if committed:
                host.completed(claim)
            elif committed is False:
                self._run.completion = None
                if report is not None:
                    host.reports.put(report)
            completion.known(committed)


async def _find_out(inside: Transaction, claim: Claim, error: StoreUnavailable) -> bool:
    """The answer to a commit was lost, or the store was away: look, for as long as it takes."""
    committed = await Outage("commit").outlast(inside.committed)
    log.warning(
        "task.commit_found_out", task_id=claim.task_id, committed=committed, error=str(error)
    )
    return committed


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
