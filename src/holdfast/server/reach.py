"""What a token reaches: the client's verbs about tasks, for one request.

Every route that shows or changes tasks goes through here, so what a token is bound to is decided
once. For a bound token, tasks beyond its bounds are not there: not in a list, not in a count, and
404 by their id. A token without the scope `operate` steers what it submitted itself, or what is its
owner's, one by one. Who submitted a task is in its id (`core.ids.marked`); no store keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from holdfast.client import Client
from holdfast.core.attempt import History
from holdfast.core.ids import marked
from holdfast.core.query import Order, Page, TaskFilter
from holdfast.core.task import Added, Json, NewTask, Priority, Task, TaskId
from holdfast.core.token import Bounds, Scope, Token
from holdfast.core.tree import TaskTree
from holdfast.core.why import Why, explain
from holdfast.definitions.call import Call
from holdfast.definitions.planning import BODYLESS
from holdfast.errors import IdempotencyConflict, InvalidOption, TaskNotFound
from holdfast.filters import read_id
from holdfast.server.compositions import (
    Part,
    as_composable,
    bounded,
    calls_of,
    conflict,
    refusal_of_links,
)
from holdfast.server.limits import Windows
from holdfast.server.problems import Refused

_URGENCY: Final = list(Priority)


class Reach:
    """The verbs of one token."""

    def __init__(self, client: Client, token: Token, windows: Windows) -> None:
        self._client = client
        self._token = token
        self._windows = windows
        self._bounds = token.bounds
        self._counted = 1
        self.may_operate = token.may(Scope.OPERATE)
        needs_mark = not self.may_operate and token.bounds.owner is None
        self._mark = token.digest if needs_mark else None

    def bounded(self, part: Part) -> Part:
        """The part as this token may submit it; `Refused` (403) if it may not."""
        return bounded(part, self._bounded)

    def _bounded(self, call: Call[Any]) -> Call[Any]:
        if call.options.callback is not None:
            call = replace(call, options=replace(call.options, signer=self._token.id))
        return _bounded(call, self._bounds)

    async def submit_many(self, parts: Sequence[Part], traceparent: str | None) -> Sequence[Added]:
        """Store what is `bounded`, all or none; `traceparent` came with the request. One answer for
        each: of a composition, that of its outermost task.
        """
        calls = [part for part in parts if isinstance(part, Call)]
        if len(calls) < len(parts):
            return await self._submit_parts(parts, traceparent)
        await self._refuse_to_wait_for_others(calls)
        self.count(len(calls))
        try:
            return await self._client.submit_many(calls, mark=self._mark, traceparent=traceparent)
        except InvalidOption as error:
            raise refusal_of_links(error) if error.option == "after" else error from None

    async def _submit_parts(
        self, parts: Sequence[Part], traceparent: str | None
    ) -> Sequence[Added]:
        calls = [call for part in parts for call in calls_of(part)]
        await self._refuse_to_wait_for_others(calls)
        self.count(len(calls))
        whole = [as_composable(part) for part in parts]
        try:
            return await self._client.submit_parts(whole, mark=self._mark, traceparent=traceparent)
        except IdempotencyConflict:
            raise
        except InvalidOption as error:
            raise refusal_of_links(error) from None

    async def _refuse_to_wait_for_others(self, calls: Sequence[Call[Any]]) -> None:
        """A bound token cannot find out by waiting how tasks ended that are not its own."""
        if self._bounds.is_narrow:
            for call in calls:
                for each in call.waits_for:
                    await self.get(each.task_id)

    def follow_up(self, part: Part) -> Sequence[NewTask]:
        """A task to be stored with the end of an attempt, if this token may submit it, and the
        notice that it may want sent. If it names no trace, it has none yet.
        """
        call = self.bounded(part)
        if not isinstance(call, Call):
            raise conflict("children", "a task that is brought along has none of its own")
        new = self._client.new_tasks([call], self._mark, has_span=False)
        return [task._replace(trace=call.options.traceparent) for task in new]

    def count(self, submitted: int) -> None:
        """Count tasks against the token's rate. The request itself was counted as one."""
        self._windows.take(self._token, submitted - self._counted)
        self._counted = 0

    async def get(self, task_id: str) -> Task:
        task = await self._client.get(task_id)
        if not self._bounds.cover(task):
            raise TaskNotFound(task.id)
        return task

    async def list(self, which: TaskFilter, *, limit: int, after: str | None, order: Order) -> Page:
        within, by_end = self._bounds.within(which), order.is_by_end
        return await self._client.list(
            within, limit=limit, after=after, oldest_first=order.is_ascending, by_end=by_end
        )

    async def tree(self, task_id: str) -> TaskTree:
        return await self._client.tree_of(await self.get(task_id), self._bounds.cover)

    async def history(self, task_id: str) -> History:
        await self._find(task_id)
        return await self._client.history(task_id)

    async def why(self, task_id: str) -> Why:
        await self._find(task_id)
        if not self._bounds.is_narrow:
            return await self._client.why(task_id)
        # Who holds its gate may be another's.
        standing = await self._client.standing(task_id)
        gate = standing.gate and replace(standing.gate, holder=None)
        return explain(replace(standing, gate=gate))

    async def steps(self, task_id: str) -> Mapping[str, Json]:
        await self._find(task_id)
        return await self._client.steps(task_id)

    async def cancel(self, task_id: str) -> Task:
        await self._refuse_to_steer(task_id)
        return await self._client.cancel(task_id)

    async def retry(self, task_id: str) -> Task:
        await self._refuse_to_steer(task_id)
        return await self._client.retry(task_id)

    async def cancel_many(self, which: TaskFilter, *, dry_run: bool) -> int:
        return await self._client.cancel_many(self._bounds.within(which), dry_run=dry_run)

    async def replay(self, which: TaskFilter, *, pace: float | None, dry_run: bool) -> int:
        within = self._bounds.within(which)
        return await self._client.replay(within, pace=pace, dry_run=dry_run)

    async def discard(self, which: TaskFilter, *, dry_run: bool) -> int:
        return await self._client.discard(self._bounds.within(which), dry_run=dry_run)

    async def number(self, which: TaskFilter, *, limit: int) -> int:
        """How many match, counted no further than to `limit`."""
        return await self._client.count(self._bounds.within(which), limit=limit)

    def may_steer(self, task_id: str) -> bool:
        """Whether it may cancel this task or start it again, if it is there for the token."""
        if self.may_operate:
            return True
        may_some = self._token.may(Scope.SUBMIT)
        return may_some and (self._bounds.owner is not None or _made(self._token, read_id(task_id)))

    async def _find(self, task_id: str) -> None:
        if self._bounds.is_narrow:
            await self.get(task_id)

    async def _refuse_to_steer(self, task_id: str) -> None:
        await self._find(task_id)
        if not self.may_steer(task_id):
            raise Refused(
                403,
                "not_your_task",
                "a token with the scope submit steers what it submitted itself; this takes the "
                "scope operate, or a token that is bound to the task's owner",
            )


def _made(token: Token, task_id: TaskId) -> bool:
    return marked(task_id, token.digest) == task_id


def _bounded(call: Call[Any], bounds: Bounds) -> Call[Any]:
    options, definition = call.options, call.definition
    if bounds.names is not None and definition.name not in bounds.names:
        raise _out_of_bounds(
            "task_type", f"submits {_listed(bounds.names)}, not {definition.name!r}"
        )
    queue = options.queue or definition.queue
    is_elsewhere = definition is BODYLESS and options.queue is None  # where its first child is
    if bounds.queues is not None and queue not in bounds.queues and not is_elsewhere:
        raise _out_of_bounds("queue", f"submits into {_listed(bounds.queues)}, not {queue!r}")
    changes: dict[str, Any] = {}
    if bounds.owner is not None:
        if options.owner not in (None, bounds.owner):
            raise _out_of_bounds("owner", "submits for its own owner only")
        changes["owner"] = bounds.owner
    highest = bounds.max_priority
    if highest is not None and _is_above(options.priority or definition.priority, highest):
        if options.priority is not None:
            raise _out_of_bounds("priority", f"submits nothing more urgent than {highest}")
        changes["priority"] = highest
    return replace(call, options=replace(options, **changes)) if changes else call


def _is_above(priority: Priority, highest: Priority) -> bool:
    return _URGENCY.index(priority) < _URGENCY.index(highest)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def _out_of_bounds(field: str, says: str) -> Refused:
    return Refused(403, "out_of_bounds", f"this token is bound: it {says}", field=field)
