"""What surrounds submits, runs and the ends of attempts: metrics, tracing, stamps, limits.

    @app.middleware
    class Timing(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            began = time.perf_counter()
            try:
                return await call_next()
            finally:
                SECONDS.labels(ctx.name).observe(time.perf_counter() - began)

The first that was registered is the outermost. A method that is not overridden is never called: an
app without middleware takes the same way as if there were no such thing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import Outcome
from holdfast.core.task import Added
from holdfast.errors import HoldfastError, InvalidOption

if TYPE_CHECKING:
    from holdfast.definitions.call import Call
    from holdfast.definitions.context import Context

T = TypeVar("T")

Calls = Sequence["Call[Any]"]


class NextSubmit(Protocol):
    """`await call_next(calls)` stores them and answers for each, in the same order."""

    def __call__(self, calls: Calls, /) -> Awaitable[Sequence[Added]]: ...


class NextRun(Protocol):
    """`await call_next()` runs the handler, wherever it belongs. It never raises for its fault."""

    def __call__(self) -> Awaitable[Outcome]: ...


class NextSettle(Protocol):
    """`call_next(outcome)` hands the end of the attempt over to be written, and says what the task
    becomes.
    """

    def __call__(self, outcome: Outcome, /) -> Settlement: ...


class Middleware:
    """Override what you want to surround. `call_next` is the rest of the way."""

    async def submit(self, calls: Calls, call_next: NextSubmit) -> Sequence[Added]:
        """Around the submit of these calls, in the process that submits. Pass on as many as came;
        `call.with_options(tags=["eu"])` is the call with other options.

        A submit through a connection that is not async, and `ctx.submit`, cannot wait: await only
        `call_next` there.
        """
        return await call_next(calls)

    async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
        """Around one attempt, on the event loop of its worker, also if the handler runs in a thread
        or a process. Return what `call_next` gave, or another outcome. What is raised here fails
        the attempt as if the handler had raised it. The task's timeout is for the handler alone.
        """
        return await call_next()

    def settle(self, claim: Claim, outcome: Outcome, call_next: NextSettle) -> None:
        """Around the end of an attempt in its worker, before it is written. It must not wait. An
        end that is not passed on is passed on as it came; what is raised before that turns a
        success into a failure, and is only logged otherwise.
        """
        call_next(outcome)


class Installed:
    """The middleware of one app, by what it surrounds; outermost first."""

    def __init__(self) -> None:
        self.submit: list[Callable[[Calls, NextSubmit], Awaitable[Sequence[Added]]]] = []
        self.run: list[Callable[[Context, NextRun], Awaitable[Outcome]]] = []
        self.settle: list[Callable[[Claim, Outcome, NextSettle], None]] = []
        self.stored: list[Callable[[Sequence[Added]], Awaitable[None]]] = []
        """Told what a submit has stored, before it returns. Not of those inside a transaction of
        the caller's: nobody knows when that ends, or how.
        """

    def add(self, one: Middleware | type[Middleware]) -> None:
        """Put it inside of those that are there."""
        made = one() if isinstance(one, type) else one
        if not isinstance(made, Middleware):
            raise InvalidOption(
                "middleware", f"expected a `Middleware` or a class of it, got {one!r}"
            )
        kind = type(made)
        if kind.submit is not Middleware.submit:
            self.submit.append(made.submit)
        if kind.run is not Middleware.run:
            self.run.append(made.run)
        if kind.settle is not Middleware.settle:
            self.settle.append(made.settle)

    async def around_submit(self, calls: Calls, store: NextSubmit) -> Sequence[Added]:
        """Submit through all of them."""
        for surround in reversed(self.submit):
            store = partial(_submit_through, surround, store)
        return await store(calls)

    def around_submit_now(
        self, calls: Calls, store: Callable[[Calls], Sequence[Added]]
    ) -> Sequence[Added]:
        """The same where nobody can wait."""
        if not self.submit:
            return store(calls)

        async def at_once(calls: Calls) -> Sequence[Added]:
            return store(calls)

        return _without_waiting(self.around_submit(calls, at_once))


async def _submit_through(
    surround: Callable[[Calls, NextSubmit], Awaitable[Sequence[Added]]],
    inner: NextSubmit,
    calls: Calls,
) -> Sequence[Added]:
    answers = await surround(calls, inner)
    if len(answers or ()) != len(calls):
        raise HoldfastError(
            f"{surround.__qualname__} was given {len(calls)} calls to submit and answered "
            f"{answers!r}. Return what `await call_next(calls)` gives, one answer for each call."
        )
    return answers


def _without_waiting(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise HoldfastError(
        "a middleware waited for something around a submit that cannot wait: one through a "
        "connection that is not async, or `ctx.submit`. Nothing was submitted, unless it waited "
        "after `call_next`. Let its `submit` await nothing but `call_next`."
    )
