"""What a handler knows about its own run, and may say while it runs.

A handler gets it by annotating its first parameter with `Context`, or by calling `context()`:

    @app.task
    def resize(ctx: Context, path: str) -> None: ...      # submitted as resize.submit(path)

All methods may be called from the handler's thread, coroutine or process; none blocks on the store,
but for `transaction()` and those that are remembered (`step_verbs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from datetime import datetime
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

from holdfast import logs
from holdfast.announcing import fields_of
from holdfast.codec.text import storable
from holdfast.core.attempt import Claim
from holdfast.core.duration import Duration, parse_duration
from holdfast.core.report import LogSize, bounded, read_cost, read_line, read_progress
from holdfast.core.schedule_state import scheduled_for
from holdfast.core.task import (
    Added,
    Cost,
    NewTask,
    Progress,
    State,
    SubmitOutcome,
    Task,
)
from holdfast.core.trace import trace_id_of, traceparent_of
from holdfast.definitions.call import Call
from holdfast.definitions.handle import Handle
from holdfast.definitions.home import Home
from holdfast.definitions.step_verbs import StepVerbs
from holdfast.definitions.steps import Steps
from holdfast.definitions.stopping import Stopping
from holdfast.definitions.submittable import Submittable
from holdfast.errors import HoldfastError, InvalidOption

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_LINE = 10_000
"""Characters of a log line; a longer one loses its middle."""


class TaskTransaction(Protocol):
    """What `ctx.transaction()` returns: a context manager, `async with` or `with`. Inside is the
    database connection; leaving it completes the task.
    """

    def complete(self, result: Any) -> None:
        """Store this as the task's result when the block is left."""
        ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def __enter__(self) -> Any: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class ContextSink(Protocol):
    """Where a context's words go: the worker's buffers, or a pipe to the worker."""

    def report(
        self, *, progress: Progress | None = None, cost: Cost | None = None, log: str | None = None
    ) -> None:
        """Store this soon, if the attempt still holds its lease."""
        ...

    def extend(self, seconds: float) -> None:
        """Give the attempt this much more time, counted from now."""
        ...

    @property
    def stopping(self) -> Stopping:
        """The request to stop: cancelled, out of time, or the worker leaves."""
        ...

    def follow_up(self, new: NewTask) -> None:
        """Store this task if and only if the attempt's success is."""
        ...

    def child(self, new: NewTask) -> None:
        """The same for a child, after which the attempt's task ends."""
        ...

    @property
    def home(self) -> Home:
        """The app that its task belongs to."""
        ...

    @property
    def steps(self) -> Steps:
        """The attempt's durable steps."""
        ...

    def transaction(self) -> TaskTransaction:
        """The attempt's transaction; there is one for each attempt."""
        ...

    def open_transaction(self) -> TaskTransaction | None:
        """The one that the handler is inside of."""
        ...


class Context(StepVerbs):
    """The current attempt, seen from inside its handler."""

    __slots__ = ("_claim", "_said", "_sink")

    def __init__(self, claim: Claim, sink: ContextSink) -> None:
        self._claim = claim
        self._sink = sink
        self._said = LogSize()

    @property
    def id(self) -> str:
        """The task's id."""
        return self._claim.task_id

    @property
    def name(self) -> str:
        return self._claim.name

    @property
    def queue(self) -> str:
        return self._claim.queue

    @property
    def attempt(self) -> int:
        """Which start of the task this is, from 1. Grows with every start, whatever its cause."""
        return self._claim.attempt

    @property
    def trace_id(self) -> str:
        """The trace that the task belongs to, as its log lines show it."""
        return trace_id_of(self._claim.task_id, self._claim.trace)

    @property
    def traceparent(self) -> str:
        """The W3C header to send along with requests that the handler makes."""
        claim = self._claim
        return traceparent_of(claim.task_id, claim.trace, claim.attempt)

    @property
    def owner(self) -> str | None:
        return self._claim.owner

    @property
    def scheduled_for(self) -> datetime | None:
        """When the run was meant to be, of a task that a schedule submitted: made up for a week
        later, it is still that instant. None for any other task.
        """
        return scheduled_for(self._claim.payload)

    @property
    def fence(self) -> int | None:
        """For a task with a lock: a number larger than any earlier holder's.

        Send it along with writes to the locked resource and let the resource refuse smaller ones.
        """
        return self._claim.fence

    @property
    def stop_requested(self) -> bool:
        """Whether this attempt should end soon: cancelled, out of time, or the worker leaves.

        A body that looks has `stop_grace` to end by itself before it is interrupted; at a deploy it
        has all of `drain`. Whatever it returns or raises once it has seen True, the attempt ends as
        the stop says: timed out, cancelled, or handed back uncharged.
        """
        return self._sink.stopping.look()

    @property
    def stopping(self) -> Stopping:
        """The same to wait for: `await ctx.stopping`, or `ctx.stopping.wait("5s")` in a handler
        that is not async, which says whether the attempt should end.
        """
        return self._sink.stopping

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far the work is: `progress(3, 10)` or `progress(0.3, 1, "reading")`."""
        self._sink.report(progress=read_progress(done, total, message))

    def log(self, line: str) -> None:
        """Add a line to the task's history (kept with it, shown by `holdfast task history`). After
        5,000 lines or 1 MiB a last one says that no more of this attempt's are kept.
        """
        lines, self._said = bounded([storable(read_line(line), LONGEST_LINE)], self._said)
        for kept in lines:
            self._sink.report(log=kept)

    def cost(self, units: float = 0.0, *, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """Add to what this task has used so far."""
        self._sink.report(cost=read_cost(units, tokens_in, tokens_out))

    def submit(self, task: Submittable[P, R], *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit a follow-up, all or nothing: it exists if and only if this attempt is recorded as
        completed, in the same commit. `ctx.submit(mail, user=7)`, or with options
        `ctx.submit(mail.options(delay="5m"), user=7)`.

        The arguments are checked now. The task is there when this one has completed, so the handle
        is for its id; one whose unique or idempotency key leads to another task then is never
        created. An idempotency key that was used with another body fails this attempt for good.
        """
        return self._submit(task.home, task.call(*args, **kwargs), self._sink.follow_up)

    def submit_child(self, task: Submittable[P, R], *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit a child: a follow-up after whose end this task ends. The handler returns, and its
        result is kept; once the last child has ended this task completes with it, or fails if a
        child did not complete. The handler must take its `Context` as a parameter.
        """
        return self._submit(task.home, task.call(*args, **kwargs), self._sink.child)

    async def children(self) -> Sequence[Task]:
        """The children of this task that have ended, oldest first: `child.state`, `child.value`.
        For a body that runs after them. `children_sync()` in a handler that is not async.
        """
        return await (await self._sink.home.verbs()).ended_children(self.id)

    def children_sync(self) -> Sequence[Task]:
        """`children()` for sync handlers."""
        return self._sink.home.wait_for(self.children())

    def _submit(self, home: Home, call: Call[R], keep: Callable[[NewTask], None]) -> Handle[R]:
        from holdfast.definitions.new_tasks import TaskMaker  # noqa: PLC0415 - it knows contexts

        if call.options.connection is not None:
            raise InvalidOption(
                "connection",
                "ctx.submit() goes with the task's own completion and takes no connection. Submit "
                "through your connection with `task.options(connection=…).submit(…)`.",
            )

        def kept(calls: Sequence[Call[Any]]) -> list[Added]:
            made = TaskMaker(home.settings, home.registry.queues).make(calls)
            for new in made:
                keep(new)
            return [Added(new.id, SubmitOutcome.CREATED, State.QUEUED) for new in made]

        (added,) = home.registry.middleware.around_submit_now([call], kept)
        return Handle(home, added.task_id, call.definition.result_of)

    def extend(self, time: Duration) -> None:
        """Give this attempt more time: its timeout is now `time` from this moment."""
        self._sink.extend(parse_duration(time))

    def transaction(self) -> TaskTransaction:
        """Write to the store's own database, and complete this task in the same commit.

            async with ctx.transaction() as conn:     # or `with`, in a handler that is not async
                await conn.execute(…)
                ctx.complete(result)                  # without it the result is None

        Leaving the block records the task as completed and commits both; if the lease was lost
        meanwhile, nothing of it is, and `LeaseLost` is raised. An exception inside rolls back, and
        the attempt has failed as usual. What the handler does after the block changes the outcome
        no more. `conn` is an asyncpg connection, for SQLite an object with `execute`, `fetchone`
        and `fetchall`, for MongoDB a session to name in each operation; in a sync handler
        `sqlite3.Connection`, `psycopg.Connection` or the other kind of session. Needs a store in a
        database (`Unsupported` otherwise). Keep it short: on SQLite everybody else who wants to
        write waits.
        """
        return self._sink.transaction()

    def complete(self, result: Any = None) -> None:
        """Inside a `transaction()` block: the result to store when it is left."""
        inside = self._sink.open_transaction()
        if inside is None:
            raise HoldfastError(
                "ctx.complete() sets the result of a `ctx.transaction()` block and works only "
                "inside one. Elsewhere the handler's return value is the result."
            )
        inside.complete(result)

    @property
    def in_transaction(self) -> bool:
        """Whether the handler is inside its `transaction()` block."""
        return self._sink.open_transaction() is not None


_current: ContextVar[Context] = ContextVar("holdfast_context")


def context() -> Context:
    """The context of the task that is running right here."""
    try:
        return _current.get()
    except LookupError:
        raise HoldfastError(
            "no task is running here: `context()` works only inside a task's handler, "
            "while a worker or `drain()` runs it."
        ) from None


def current_context() -> Context | None:
    """The context of the task that is running right here, if one is."""
    return _current.get(None)


def current_claim() -> Claim | None:
    """What is running right here, as its worker holds it."""
    running = _current.get(None)
    return None if running is None else running._claim


def _fields() -> dict[str, Any]:
    running = _current.get(None)
    return {} if running is None else fields_of(running._claim)


logs.running_task = _fields


def enter_context(value: Context) -> None:
    """Make `value` the current context of this coroutine, thread or process. For runners."""
    _current.set(value)
