"""The verbs of a context that are remembered from one attempt to the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from uuid import UUID

from holdfast.core.duration import Duration
from holdfast.core.task import Json
from holdfast.definitions.readers import read_duration, read_event, read_event_key
from holdfast.errors import InvalidOption

if TYPE_CHECKING:
    from holdfast.definitions.context import ContextSink
    from holdfast.definitions.steps import Steps

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

EventKey = str | int | UUID
AT_ONCE = 5


class StepVerbs:
    """Durable steps, sleeps and waits: for `async def` handlers, and with `_sync` for others."""

    __slots__ = ()

    _sink: ContextSink

    # No coroutines of their own, but those of `Steps`: each would cost at every step.

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def step(
        self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function once in the life of this task: `await ctx.step("charge", charge, 17)`.

        What it returns is JSON by its return annotation, `max_result` at most, and on disk when
        this returns; every later attempt gets it from there, and the function is not called. What
        it raises is not recorded: the attempt fails as usual, and the next one calls it again.
        Names are unique in a task, and called in the same order in every attempt.
        """
        return self._sink.steps.step(name, function, args, kwargs)

    def step_sync(
        self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """`step` for a handler that is not async."""
        result: R = self._steps.step_sync(name, function, args, kwargs)
        return result

    async def sleep(self, time: Duration) -> None:
        """Go on after this time: `await ctx.sleep("3d")`. The attempt ends here (`finally` runs),
        its slot is free, and another attempt, uncharged, comes back to this line.
        """
        await self._steps.sleep(read_duration("time", time))

    def sleep_sync(self, time: Duration) -> None:
        """`sleep` for a handler that is not async."""
        self._steps.sleep_sync(read_duration("time", time))

    async def wait_for(self, event: str, *, key: EventKey, timeout: Duration | None = None) -> Json:
        """Wait until somebody emits this event: `app.emit("approved", 17, {…})`; its payload.

        One that was emitted before counts too, as long as it is kept (`retention`). Like a sleep
        the wait takes no slot. `EventTimeout` after that time; without one it waits for ever.
        """
        return await self._steps.wait_for(*_event(event, key), _timeout(timeout))

    def wait_for_sync(self, event: str, *, key: EventKey, timeout: Duration | None = None) -> Json:
        """`wait_for` for a handler that is not async."""
        return self._steps.wait_for_sync(*_event(event, key), _timeout(timeout))

    @overload
    async def map(
        self,
        function: Callable[[T], Awaitable[R]],
        items: Iterable[T],
        *,
        name: str | None = None,
        concurrency: int = AT_ONCE,
    ) -> list[R]: ...

    @overload
    async def map(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        name: str | None = None,
        concurrency: int = AT_ONCE,
    ) -> list[R]: ...

    async def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        *,
        name: str | None = None,
        concurrency: int = AT_ONCE,
    ) -> list[Any]:
        """One step for each item, so many at a time; the results in the order of the items.

        Steps are named by the function, or `name`, and numbered: `resize-1`, `resize-2` … So the
        items must be the same in every attempt: let a step get them.
        """
        called = _name_of(function) if name is None else name
        return await self._steps.map(function, items, called, _number(concurrency))

    def map_sync(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        name: str | None = None,
        concurrency: int = AT_ONCE,
    ) -> list[R]:
        """`map` for a handler that is not async: the steps run in threads."""
        called = _name_of(function) if name is None else name
        return self._steps.map_sync(function, items, called, _number(concurrency))

    @property
    def _steps(self) -> Steps:
        return self._sink.steps


def _event(event: object, key: object) -> tuple[str, str]:
    return read_event("event", event), read_event_key("key", key)


def _timeout(timeout: Duration | None) -> float | None:
    return None if timeout is None else read_duration("timeout", timeout)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidOption(
            "name", f"{function!r} has none: say `ctx.map(f, items, name='resize')`"
        )
    return str(name)


def _number(concurrency: object) -> int:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidOption("concurrency", f"expected a whole number from 1, got {concurrency!r}")
    return concurrency
