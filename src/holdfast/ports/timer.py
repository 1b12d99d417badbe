"""What a timer must promise: somebody outside of our processes who calls us at a given time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Timer(Protocol):
    """Calls `POST /v1/tasks/execute` with a key at an instant, at least once.

    It is a hint, the store is the truth: a call that is lost, late, early or doubled must harm
    nobody (`timers.arming`). So it keeps no promise about exactly once, and none of order.
    """

    @property
    def horizon(self) -> float:
        """How many seconds ahead it can be armed; infinite if that does not matter."""
        ...

    async def arm(self, key: str, at: datetime) -> str:
        """See to it that we are called with this key at that instant; at once if that has passed.

        Idempotent by (key, at): armed twice it calls once, unless it has called already. It answers
        the name by which the service knows it, for `cancel`. `TimerUnavailable` if it cannot be
        armed now; whether it was is then unknown.
        """
        ...

    async def cancel(self, key: str, name: str | None = None) -> None:
        """Do not call: the timer of this `name`, or whatever is armed with this key, which may take
        a look at all there is. Nothing happens if there is none. The call may be under way.
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Idempotent. What is armed stays armed."""
        ...
