"""What a handler of a batch knows about its run, and about each of its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

from holdfast.core.attempt import Claim
from holdfast.core.duration import Duration
from holdfast.definitions.context import Context, ContextSink, TaskTransaction
from holdfast.errors import Unsupported


class SharedContext(Context):
    """What is refused where several tasks share one run: whatever ends or records one of them while
    the others go on.
    """

    __slots__ = ()

    def transaction(self) -> TaskTransaction:
        raise Unsupported(
            "ctx.transaction() completes one task with your writes, and a batch has many. Use a "
            "connection of your own, or a task without `batch`."
        )

    def step(self, *_args: Any, **_kwargs: Any) -> Never:
        raise Unsupported(_NO_STEPS)

    @property
    def _steps(self) -> Never:
        raise Unsupported(_NO_STEPS)


class BatchContext(SharedContext):
    """The run of a batch, seen from inside its handler.

    `members` are the contexts of its tasks, in the order of the items: their ids and attempts, and
    what is said of one of them alone. What is said of the batch itself (`progress`, `log`) is said
    of every member; a `cost` is shared evenly. `id`, `attempt` and the like are the first member's.
    """

    __slots__ = ("members",)

    def __init__(self, whole: Context, members: Sequence[tuple[Claim, ContextSink]]) -> None:
        """`whole` speaks for all of them."""
        super().__init__(whole._claim, whole._sink)
        self.members: Sequence[Context] = tuple(
            MemberContext(one, its_sink, self) for one, its_sink in members
        )

    def submit(self, *_args: object, **_kwargs: object) -> Never:
        raise Unsupported(
            "a follow-up goes with the completion of one task, and this is a batch of them: write "
            "`ctx.members[n].submit(…)`"
        )

    def submit_child(self, *_args: object, **_kwargs: object) -> Never:
        raise Unsupported(
            "a child belongs to one task, and this is a batch of them: write "
            "`ctx.members[n].submit_child(…)`"
        )


class MemberContext(SharedContext):
    """One task of a batch. It has its own attempt, and shares the time limit of the batch."""

    __slots__ = ("_batch",)

    def __init__(self, claim: Claim, sink: ContextSink, batch: BatchContext) -> None:
        super().__init__(claim, sink)
        self._batch = batch

    @property
    def stop_requested(self) -> bool:
        """Whether this task was cancelled, or the whole batch should end soon."""
        return super().stop_requested or self._batch.stop_requested

    def extend(self, time: Duration) -> None:
        self._batch.extend(time)


_NO_STEPS = (
    "durable steps, sleeps and waits are of one task, and a batch runs many. Let the handler "
    "submit a task that has steps, or leave out `batch`."
)
