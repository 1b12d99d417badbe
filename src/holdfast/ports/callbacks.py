"""What a store must promise about callbacks: notices of ended tasks that are owed to a URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.core.callback import Callback


class CallbackStore(Protocol):
    """Keeps the notices that are not delivered yet.

    When a task with a `callback` ends, however it does (settled, cancelled, expired), the notice is
    written in the same commit, due at once: none is owed for a task that did not end, and none is
    forgotten. A requeued task takes back a notice that was not delivered, and gets a new one at its
    next end. A forgotten task's notice goes with it.
    """

    async def due_callbacks(self, *, limit: int, lease: float) -> Sequence[Callback]:
        """Take up to `limit` notices that are due, the longest due first.

        They are nobody else's for `lease` seconds, and due again then, unless `callback_done` came
        before: a notice may be delivered twice, never not at all. Two callers never get the same,
        however they race. Cheap when there is none.
        """
        ...

    async def callback_done(
        self, callback: Callback, *, retry_in: float | None, error: str | None
    ) -> bool:
        """Say how a delivery went. False, and nothing changes, if the notice is no longer the
        caller's: its lease ran out and another has it, or the task was requeued or forgotten.

        With `retry_in` it is due again that many seconds from now. Without, it is done with: the
        history gets the event `callback_delivered`, or `callback_failed` with the `error` as its
        detail if there is one. A repeat answers False.
        """
        ...
