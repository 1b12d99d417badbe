"""Who wakes a sleeping worker. A hint, never the truth: losing every wake-up costs latency only,
because a worker polls the store underneath (`poll`, 1 s by default).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, runtime_checkable

EVERYBODY: Final = 1 << 30
"""As many as sleep: for work that not every worker of the queue could take."""


class Listener(Protocol):
    """A worker's ear. Wake-ups that arrive between two waits are remembered, not lost."""

    async def wait(self, timeout: float) -> bool:
        """Sleep until woken or for `timeout` seconds; True if woken.

        A wake-up since the last wait returns at once. So the order is: listen, claim, and if that
        brought nothing, wait; a task submitted in between is not slept through.
        """
        ...


class Dispatcher(Protocol):
    """Carries wake-ups from submitters to workers. Safe from any thread and event loop."""

    def wake(self, queues: Mapping[str, int]) -> None:
        """Tell sleeping workers that there is work: for each queue, how many tasks.

        A dispatcher that can count wakes as many as that; others wake all. Never blocks, never
        raises.
        """
        ...

    def listen(self, queues: Collection[str] | None) -> AbstractAsyncContextManager[Listener]:
        """Be woken for these queues (None: all) while the context is open."""
        ...

    async def mode(self) -> str:
        """How wake-ups travel, for `doctor`: `memory`, `sockets`, `listen`, `redis`; `poll` if they
        do not, and a worker finds new work only by looking.
        """
        ...

    async def close(self) -> None:
        """Let go of sockets and files. Idempotent."""
        ...


@runtime_checkable
class RidingDispatcher(Protocol):
    """A dispatcher whose calls a `CallingStore` can take along: no message of their own, and they
    arrive with the work.
    """

    def may_ride(self, queues: Collection[str]) -> bool:
        """Whether a call for these queues should ride along now. Not if one left a moment ago: many
        commits that call would wait for each other. Then `wake`, which gathers them.
        """
        ...

    def wake_here(self, queues: Collection[str]) -> None:
        """Tell the sleepers of this process, after a ride that told all others."""
        ...


@runtime_checkable
class RestingDispatcher(Protocol):
    """A dispatcher that costs something while another one is in charge."""

    async def rest(self) -> None:
        """Let go of connections, unless somebody listens. They come back with whoever needs one."""
        ...


@runtime_checkable
class HintingDispatcher(Protocol):
    """A dispatcher that cannot hear commits, and so guesses when they come."""

    def wake_soon(self, queues: Mapping[str, int]) -> None:
        """Work for these queues is stored in somebody's transaction, which will commit soon or
        never. Never blocks, never raises.
        """
        ...
