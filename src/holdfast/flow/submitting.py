"""Storing compositions: planned whole, then written in one commit, or not at all. Large groups come
in slices (`slicing`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import uuid4

from holdfast.core import keys
from holdfast.core.chore import CHORE, FORGET_KEY, chore, chore_key, read_chore
from holdfast.core.composition import Parent, wired
from holdfast.core.flow import children_latch
from holdfast.core.gate import Count, GateKind, gate_name
from holdfast.core.keys import stored_key
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.task import Added, NewTask, State, SubmitOutcome, TaskId
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Composable, Composite
from holdfast.definitions.middleware import Installed
from holdfast.definitions.planning import Plan, fingerprint, planned, planned_parent
from holdfast.errors import IdempotencyConflict, InvalidOption, RecordConflict
from holdfast.ports.dispatcher import Dispatcher, work_for
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.settings import Settings

AT_A_TIME: Final = 1000
_MARGIN: Final = timedelta(seconds=5)

Make = Callable[[Sequence[Call[Any]]], Sequence[NewTask]]
Hold = Callable[[TaskId], Put]
"""The record that is to be written with a slice of the group of this parent."""
Said = Callable[[Sequence[NewTask], Sequence[Added], int], Sequence[Added]]


class _Guard(NamedTuple):
    """What keeps a composition from being stored twice: its record; the number of its parent."""

    root: int
    key: str
    fingerprint: str
    version: int = 0


class Composer:
    """Stores compositions for a client."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        middleware: Installed,
        settings: Settings,
        said: Said,
        traced: Callable[[Sequence[NewTask]], Sequence[NewTask]],
    ) -> None:
        """`traced` makes the spans of what is submitted, if there are to be any."""
        self._traced = traced
        self._store = store
        self._dispatcher = dispatcher
        self._middleware = middleware
        self._settings = settings
        self._said = said

    async def submit(self, parts: Sequence[Composable[Any]], make: Make) -> Sequence[Added]:
        """Store these, all or none; one answer for each, that of its outermost task."""
        plan = planned(parts)
        await refuse_unknown_tasks(self._store, plan.calls, plan)
        guards = _guards(plan)
        if not guards:
            answers = await self._commit(plan, make)
            return [answers[root] for root in plan.roots]
        return await self._submit_once(parts, plan, guards, make)

    async def _submit_once(
        self,
        parts: Sequence[Composable[Any]],
        plan: Plan,
        guards: Sequence[_Guard],
        make: Make,
    ) -> Sequence[Added]:
        """The same for compositions with keys: those that were stored before are left out."""
        while True:
            try:
                answers = await self._commit(plan, make, guards=guards)
            except RecordConflict as conflict:
                guard = next(
                    each for each in guards if chore_key(FORGET_KEY, each.key) == conflict.key
                )
                found = await self._stored_before(guard)
                if isinstance(found, _Guard):
                    guards = [found if each.key == found.key else each for each in guards]
                    continue
                at = plan.roots.index(guard.root)
                rest = [part for n, part in enumerate(parts) if n != at]
                others = await self.submit(rest, make) if rest else ()
                return [*others[:at], found, *others[at:]]
            return [answers[root] for root in plan.roots]

    async def _stored_before(self, guard: _Guard) -> Added | _Guard:
        """The composition that has the key, or the guard to try with if nobody has it any more."""
        record = await one_record(self._store, CHORE, chore_key(FORGET_KEY, guard.key))
        if record is None:
            return guard._replace(version=0)
        _, said = read_chore(record)
        task = await self._store.get(TaskId(said["task_id"]))
        is_over = record.due_at is None or await self._store.now() > record.due_at + _MARGIN
        if task is None or is_over:
            return guard._replace(version=record.version)
        if said["fingerprint"] != guard.fingerprint:
            raise keys.with_given_key(IdempotencyConflict(guard.key, task.id))
        return Added(task.id, SubmitOutcome.IDEMPOTENCY_KEY, task.state)

    async def submit_parent(self, part: Composite[Any], make: Make, hold: Hold) -> Added:
        """Store the parent of a group that comes in slices, with what keeps it from ending before;
        the answer tells if it was stored before.
        """
        plan = planned_parent(part)
        await refuse_unknown_tasks(self._store, plan.calls, plan)
        guards = _guards(plan)
        try:
            (added,) = await self._commit(plan, make, guards=guards, hold=hold)
        except RecordConflict:
            found = await self._stored_before(guards[0])
            if isinstance(found, Added):
                return found
            (added,) = await self._commit(plan, make, guards=[found], hold=hold)
        return added

    async def submit_slice(
        self, some: Sequence[Composable[Any]], parent: Parent, make: Make, hold: Hold
    ) -> None:
        """Store some of its members; `RecordConflict` if it was given up meanwhile."""
        plan = planned(some, level=1)
        await refuse_unknown_tasks(self._store, plan.calls, plan)
        await self._commit(plan, make, under=parent, hold=hold)

    def _with_span(
        self, made: Sequence[NewTask], plan: Plan, under: Parent | None
    ) -> Sequence[NewTask]:
        """What begins a trace are the outermost. The others are below the same submit: a parent
        without a body has no run that they could be below.
        """
        if not self._settings.otel:
            return made
        number = len(plan.calls)  # behind them are the notices
        roots = [plan.roots[bisect_right(plan.firsts, n) - 1] for n in range(number)]
        begins = set(plan.roots) if under is None else set[int]()
        begin = [n for n in range(number) if made[n].trace is not None or n in begins]
        tasks = list(made)
        for n, task in zip(begin, self._traced([made[n] for n in begin]), strict=True):
            tasks[n] = task
        for n, root in enumerate(roots):
            tasks[n] = tasks[n]._replace(trace=tasks[n].trace or tasks[root].trace)
        return tasks

    async def _commit(
        self,
        plan: Plan,
        make: Make,
        *,
        guards: Sequence[_Guard] = (),
        under: Parent | None = None,
        hold: Hold | None = None,
    ) -> Sequence[Added]:
        async def store(calls: Sequence[Call[Any]]) -> Sequence[Added]:
            made = self._with_span(make(calls), plan, under)
            tied = wired(made[: len(calls)], plan.places, under)
            tasks = [*tied.tasks, *made[len(calls) :]]
            counts = list(tied.counts)
            if under is not None:
                latch = gate_name(GateKind.LATCH, children_latch(under.id))
                counts.append(Count(latch, len(plan.roots)))
            records: list[Put | Delete] = [
                self._record(each, tied.tasks[each.root].id) for each in guards
            ]
            if hold is not None:
                records.append(hold(under.id if under else tied.tasks[0].id))
            changes = Changes(
                uuid4().hex,
                tasks=tasks,
                records=records,
                idempotency_window=self._settings.idempotency_window,
                counts=counts,
            )
            with keys.as_given():
                added = await self._store.commit(changes)
            ready = [
                task
                for task, each in zip(tasks, added, strict=True)
                if each.state is not State.BLOCKED
            ]
            self._dispatcher.added(work_for(ready))
            for tell in self._middleware.stored:
                await tell(added)
            return self._said(tasks, added, len(calls))

        return await self._middleware.around_submit(plan.calls, store)

    def _record(self, guard: _Guard, task_id: TaskId) -> Put:
        said = {"task_id": task_id, "fingerprint": guard.fingerprint}
        window = self._settings.idempotency_window
        return chore(FORGET_KEY, guard.key, said, due_in=window, version=guard.version)


async def refuse_unknown_tasks(
    store: Store, calls: Sequence[Call[Any]], plan: Plan | None = None
) -> None:
    """Refuse tasks that come after one that does not exist: nobody could tell how it ended."""
    named = {
        each.task_id: None
        for call in calls
        if call.results or call.options.after
        for each in call.waits_for
    }
    if plan is not None:
        named |= {each.task_id: None for place in plan.places for each in place.tasks}
    for ids in _slices(named, AT_A_TIME):
        found = (await store.list(TaskFilter(ids=tuple(ids)), limit=AT_A_TIME)).tasks
        missing = set(ids) - {task.id for task in found}
        if missing:
            raise InvalidOption(
                "after",
                f"there is no task {min(missing)}: it never was, or is forgotten (`retention`). "
                "Nothing was submitted.",
            )


def _slices(many: Iterable[TaskId], size: int) -> Iterator[list[TaskId]]:
    rest = iter(many)
    while some := list(islice(rest, size)):
        yield some


def _guards(plan: Plan) -> list[_Guard]:
    """The guards of those compositions that have an idempotency key, and their fingerprints."""
    guards: list[_Guard] = []
    for root in plan.roots:
        call = plan.calls[root]
        key = stored_key(call.options.owner, call.options.idempotency_key)
        if key is None or plan.places[root].children is None:
            continue
        guard = _Guard(root, key, fingerprint(plan, root))
        if any(each.key == key for each in guards):
            raise InvalidOption(
                "idempotency_key", "two compositions that are submitted together have the same"
            )
        plan.calls[root] = replace(call, fingerprint=guard.fingerprint)
        guards.append(guard)
    return guards
