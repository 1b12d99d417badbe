"""From calls to what a store is given: ids, the options worked out, the trace they belong to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from holdfast.core.callback import notice
from holdfast.core.gate import sharing
from holdfast.core.ids import marked, uuid7
from holdfast.core.task import NewTask, Priority, Task, TaskId
from holdfast.core.trace import traceparent_of
from holdfast.definitions import tracing
from holdfast.definitions.call import Call
from holdfast.definitions.gate_makers import Makers, queue_gates
from holdfast.errors import InvalidOption
from holdfast.settings import Settings

_OWN: Final = NewTask._fields[:3]
"""What is every plain task's own: id, name, payload."""


class IdMaker:
    """Makes task ids that grow, even when the clock goes back.

    Time in 1/4096 ms, then 62 fresh random bits each: two forks of one process share the counter,
    never the random bits.
    """

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def make(self, count: int) -> Iterator[TaskId]:
        """Make that many ids, each larger than the one before."""
        with self._lock:
            first = max(self._last + 1, time.time_ns() * 4096 // 1_000_000)
            self._last = first + count - 1
        random = os.urandom(8 * count)
        for n in range(count):
            ticks = first + n
            bits = int.from_bytes(random[8 * n : 8 * n + 8]) >> 2
            yield uuid7(ticks >> 12, (ticks & 0xFFF) << 62 | bits)


class TaskMaker:
    """Makes the new tasks of one client."""

    def __init__(self, settings: Settings, queues: Mapping[str, Makers] | None = None) -> None:
        """`queues` are those with limits of their own (`Registry.queues`)."""
        self._settings = settings
        self._queues = {} if queues is None else queues  # may be filled later
        self.head_starts = {p: settings.aging.head_start(p) for p in Priority}
        self._ids = IdMaker()
        self._common: dict[object, tuple[Any, ...]] = {}

    def make(
        self,
        calls: Sequence[Call[Any]],
        mark: bytes | None = None,
        traceparent: str | None = None,
        *,
        has_span: bool = True,
    ) -> Sequence[NewTask]:
        """The tasks of these calls, each with an id, and behind them the notices that they want
        sent. Those that name no trace belong to `traceparent`, else to that of the caller.
        `InvalidOption` for one that is debounced or throttled: what becomes of it must be looked up
        first (`flow.coalescing`), so it can only be submitted by itself. What is not submitted as
        it is made has no span.
        """
        for call in calls:
            if call.coalescing is not None:
                raise _looks_first(call)
        ids = self._ids.make(len(calls))
        if mark is not None:
            ids = (marked(task_id, mark) for task_id in ids)
        notices: list[NewTask] = []
        tasks = [
            self._one(call, task_id, notices) for call, task_id in zip(calls, ids, strict=True)
        ]
        if self._queues:
            tasks = list(map(self._with_limits_of_its_queue, tasks))
        trace = traceparent or tracing.current_traceparent()
        if has_span and self._settings.otel:
            return self._with_span(tasks, notices, trace)
        tasks += notices
        if trace is None:
            return tasks
        return [task if task.trace else task._replace(trace=trace) for task in tasks]

    def traced(
        self, tasks: Sequence[NewTask], trace: str | None = None, operation: str = "submit"
    ) -> Sequence[NewTask]:
        """These tasks, with the span of their submit as the parent of what becomes of them, if
        spans are made.
        """
        make = tracing.spans_of_submits if self._settings.otel else None
        if make is not None:
            return make(tasks, trace, operation)
        return [task if task.trace else task._replace(trace=trace) for task in tasks]

    def _with_span(
        self, tasks: Sequence[NewTask], notices: Sequence[NewTask], trace: str | None
    ) -> Sequence[NewTask]:
        tasks = self.traced(tasks, trace)
        told = [task for task in tasks if task.callback is not None]
        within = [
            notice._replace(trace=traceparent_of(task.id, task.trace))
            for task, notice in zip(told, notices, strict=True)
        ]
        return [*tasks, *within]

    def new_id(self) -> TaskId:
        """The id of a task that somebody else makes."""
        return next(self._ids.make(1))

    def notice(self, task: NewTask | Task, signer: str | None = None, *, end: int = 0) -> NewTask:
        """The task that tells of this one's end."""
        return notice(
            task.id,
            task.callback or "",
            head_start=self.head_starts[Priority.NORMAL],
            owner=task.owner,
            trace=task.trace,
            signer=signer,
            end=end,
        )

    def _with_limits_of_its_queue(self, task: NewTask) -> NewTask:
        makers = self._queues.get(task.queue)
        if makers is None:
            return task
        of_queue = sharing(queue_gates(makers, task.payload, task.owner), task.head_start)
        return task._replace(gates=task.gates + of_queue)

    def _one(self, call: Call[Any], task_id: TaskId, notices: list[NewTask]) -> NewTask:
        """Plain tasks of one definition differ in id and payload only: the rest is worked out once,
        which halves what a bulk submit costs here.
        """
        if not call.is_plain:
            task = call.new_task(task_id, self._settings, self.head_starts)
            if task.callback is not None:
                notices.append(self.notice(task, call.options.signer))
            return task
        definition, payload = call.definition, call.payload
        common = self._common.get(definition)
        if common is None:
            first = call.new_task(task_id, self._settings, self.head_starts)
            self._common[definition] = first[len(_OWN) :]
            return first
        definition.check_limit(payload, self._settings.max_payload)
        return NewTask._make((task_id, definition.name, payload, *common))


def _looks_first(call: Call[Any]) -> InvalidOption:
    kind = "debounce" if call.coalescing is None else call.coalescing.kind
    return InvalidOption(
        kind,
        f"task {call.definition.name!r} looks in the store which submit wins, and cannot be stored "
        "unseen with something else: in a transaction of yours, with the completion of a task "
        "(`ctx.submit`, `follow_ups`) or as part of a composition. Submit it by itself: "
        "`await f.submit_async(…)`, also inside of a handler. Nothing was submitted",
    )
