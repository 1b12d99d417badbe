"""Says in the log what became of tasks: the same words for every worker, rescuer and server.

Starts, completions, retries and releases are news where there are few, and noise where there are
thousands a second: an `Announcer` says the first of them. Every other change of a task's state is
always said.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import Added, Cause, NewTask, State, Task
from holdfast.core.trace import trace_id_of
from holdfast.logs import EventLog

PERIOD: Final = 10.0
MOST_SHOWN: Final = 200
"""Lines about single starts and ends that are shown in each `PERIOD` of seconds."""
MOST_NAMED: Final = 20
"""Of tasks that one step of an operator changed, so many are named; of more, the number is said."""


def fields_of(claim: Claim) -> dict[str, Any]:
    """What every line about an attempt has."""
    return {
        "task_id": claim.task_id,
        "task_name": claim.name,
        "attempt": claim.attempt,
        "trace_id": trace_id_of(claim.task_id, claim.trace),
    }


def _announce(log: EventLog, claim: Claim, settlement: Settlement) -> None:
    """Say how an attempt ended that was no plain success, and what its task becomes."""
    said = fields_of(claim) | {"ended": settlement.ended.value}
    error, delay = settlement.error, round(settlement.delay, 3)
    if error is not None:
        said["error"] = f"{error.type}: {error.message}"
        if error.traceback is not None:
            said["exception"] = error.traceback
    match settlement.state:
        case State.FAILED:
            log.warning("task.failed", **said, reason=settlement.reason)
        case State.DEAD_LETTER:
            log.warning("task.dead_lettered", **said, reason=settlement.reason)
        case State.RETRYING:
            log.info("task.retrying", **said, in_seconds=delay)
        case State.CANCELLED:
            log.info("task.cancelled", **said)
        case State.COMPLETED:
            log.info("task.completed", **said)
        case _ if settlement.cause is Cause.WORKER_LOST:
            log.info("task.rescued", **said, worker_id=claim.worker_id)
        case _:
            log.info("task.released", **said, in_seconds=delay)


def announce_cancelled(log: EventLog, tasks: Sequence[Task]) -> None:
    """Say that these were cancelled, or that their workers were asked to stop them."""
    if len(tasks) > MOST_NAMED:
        log.info("tasks.cancelled", tasks=len(tasks))
        return
    for task in tasks:
        if task.state is State.RUNNING:
            log.info("task.cancel_requested", **_about(task), worker_id=task.worker_id)
        else:
            log.info("task.cancelled", **_about(task))


def announce_given_up(log: EventLog, tasks: Sequence[Task]) -> None:
    """Say that these became dead letters without being started."""
    for task in tasks:
        log.warning("task.dead_lettered", **_about(task), reason=task.reason)


def announce_requeued(log: EventLog, tasks: Sequence[Task]) -> None:
    """Say that somebody started these again."""
    if len(tasks) > MOST_NAMED:
        log.info("tasks.requeued", tasks=len(tasks))
        return
    for task in tasks:
        log.info("task.requeued", **_about(task))


def _about(task: Task) -> dict[str, Any]:
    return {"task_id": task.id, "task_name": task.name, "trace_id": task.trace_id}


class Announcer:
    """Lets the first `MOST_SHOWN` lines of each `PERIOD` through.

    `open` is all that a hot path looks at. At `debug` it never closes, above `info` it never opens.
    `unsaid` counts the attempts that went on since it closed, by what became of their tasks.
    """

    __slots__ = (
        "_is_shut", "_left", "_log", "_on_closed", "_since", "_without_end", "open", "unsaid",
    )  # fmt: skip

    def __init__(self, log: EventLog, on_closed: Callable[[float], None] | None = None) -> None:
        """`on_closed` hears for how many seconds, and sees to it that `renew` is called then.
        Without it, ask `is_open`, which looks at the clock.
        """
        self.unsaid: Counter[State] = Counter()
        self._log = log
        self._on_closed = on_closed
        self._is_shut = False
        self._left = 0
        self._since = 0.0
        self._without_end = log.says(logging.DEBUG)
        self.open = log.says(logging.INFO)

    def is_open(self) -> bool:
        """Whether a line may be shown now, by the clock."""
        if self._on_closed is not None:
            return self.open
        if not self._log.says(logging.INFO):
            return False
        if self._is_shut and time.monotonic() - self._since > PERIOD:
            self.renew()
        return not self._is_shut

    def submitted(self, tasks: Sequence[NewTask], added: Sequence[Added]) -> None:
        if not tasks:
            return
        first, task_id = tasks[0], added[0].task_id
        if len(tasks) > 1:
            new = sum(each.created for each in added)
            self._log.info("tasks.submitted", tasks=len(tasks), new=new, first=task_id)
        else:
            self._log.info(
                "task.submitted",
                task_id=task_id,
                task_name=first.name,
                trace_id=trace_id_of(task_id, first.trace),
                queue=first.queue,
                state=added[0].state.value,
                existing=not added[0].created,
            )
        self.count()

    def started(self, claim: Claim) -> None:
        cause = claim.cause.value
        self._log.info("task.started", **fields_of(claim), queue=claim.queue, cause=cause)
        self.count()

    def completed(self, claim: Claim) -> None:
        self._log.info("task.completed", **fields_of(claim))
        self.count()

    def ended(self, claim: Claim, settlement: Settlement) -> None:
        """An attempt has ended: always said, unless it is one of many that succeeded or of many
        after which the task goes on.
        """
        state = settlement.state
        if state in TERMINAL or settlement.cause is Cause.WORKER_LOST:
            if state is not State.COMPLETED:
                _announce(self._log, claim, settlement)
            elif self.is_open():
                self.completed(claim)
        elif self.is_open():
            _announce(self._log, claim, settlement)
            self.count()
        else:
            self.unsaid[state] += 1

    def count(self) -> None:
        """A line was shown."""
        if self._without_end:
            return
        now = time.monotonic()
        if now - self._since > PERIOD:
            self._since, self._left = now, MOST_SHOWN
        self._left -= 1
        if self._left == 0:
            self._is_shut, self.open = True, False
            if self._on_closed is not None:
                self._on_closed(self._since + PERIOD - now)

    def renew(self) -> None:
        """Begin another period."""
        self._since, self._is_shut, self.open = 0.0, False, True
        self.unsaid.clear()
