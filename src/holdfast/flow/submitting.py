"""Storing compositions: planned whole, then written in one commit, or not at all.

A group of more than `SLICE` members is stored in slices instead, so that it may be of any size. Its
parent comes first, and cannot end while members are still to come: the latch of its children is
counted up by one too many, which the last slice counts down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import uuid4

from holdfast.core import keys
from holdfast.core.composition import Parent, wired
from holdfast.core.flow import ChildOrder, children_latch
from holdfast.core.gate import Count, GateKind, gate_name
from holdfast.core.keys import stored_key
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.task import Added, NewTask, State, SubmitOutcome, TaskId
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Composable, Composite, Link, Members
from holdfast.definitions.middleware import Installed
from holdfast.definitions.planning import Plan, fingerprint, planned, planned_parent
from holdfast.errors import IdempotencyConflict, InvalidOption, RecordConflict
from holdfast.ports.dispatcher import Dispatcher, work_for
from holdfast.ports.store import Store
from holdfast.settings import Settings

SLICE: Final = 1000
"""Members of a group that are stored at a time."""
ONCE: Final = "composition"
"""The records that keep a composition from being stored twice, by their idempotency keys."""
HOLD: Final = "hold"
"""The records of groups that are being stored, by their parents."""
PATIENCE: Final = 60.0
"""Seconds between two slices after which nobody is thought to store more."""
_MARGIN: Final = timedelta(seconds=5)

Make = Callable[[Sequence[Call[Any]]], Sequence[NewTask]]
Said = Callable[[Sequence[NewTask], Sequence[Added], int], Sequence[Added]]


class _Guard(NamedTuple):
    """What keeps a composition from being stored twice: its record; the number of its parent."""

    root: int
    key: str
    fingerprint: str
    version: int = 0


class _Hold:
    """What keeps the parent of a large group from ending before all its members are stored, and the
    record of it: if it is not renewed any more, somebody else cancels what there is.
    """

    def __init__(self) -> None:
        self.stored = 0
        self._version = 0

    def renewed(self, parent_id: TaskId) -> Put:
        self._version += 1
        return Put(HOLD, parent_id, "{}", version=self._version - 1, due_in=PATIENCE)

    def end(self, parent_id: TaskId) -> Changes:
        latch = gate_name(GateKind.LATCH, children_latch(parent_id))
        gone = Delete(HOLD, parent_id, self._version)
        return Changes(uuid4().hex, records=[gone], counts=[Count(latch, -1)])


class Composer:
    """Stores compositions for a client."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        middleware: Installed,
        settings: Settings,
        said: Said,
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._middleware = middleware
        self._settings = settings
        self._said = said

    async def submit(self, parts: Sequence[Composable[Any]], make: Make) -> Sequence[Added]:
        """Store these, all or none; one answer for each, that of its outermost task."""
        if len(parts) == 1 and isinstance(parts[0], Composite):
            whole = _as_list(parts[0])
            if whole is None:
                return [await self._submit_large(parts[0], make)]
            parts = [whole]
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
                guard = next(each for each in guards if each.key == conflict.key)
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
        record = await self._store.record(ONCE, guard.key)
        if record is None:
            return guard._replace(version=0)
        said = json.loads(record.document)
        task = await self._store.get(TaskId(said["task_id"]))
        is_over = record.due_at is None or await self._store.now() > record.due_at + _MARGIN
        if task is None or is_over:
            return guard._replace(version=record.version)
        if said["fingerprint"] != guard.fingerprint:
            raise keys.with_given_key(IdempotencyConflict(guard.key, task.id))
        return Added(task.id, SubmitOutcome.IDEMPOTENCY_KEY, task.state)

    async def _submit_large(self, part: Composite[Any], make: Make) -> Added:
        """Store a group in slices, its parent first."""
        plan = planned_parent(part)
        await refuse_unknown_tasks(self._store, plan.calls, plan)
        guards = _guards(plan)
        hold = _Hold()
        try:
            (added,) = await self._commit(plan, make, guards=guards, hold=hold)
        except RecordConflict:
            found = await self._stored_before(guards[0])
            if isinstance(found, Added):
                return found
            (added,) = await self._commit(plan, make, guards=[found], hold=hold)
        parent = Parent(added.task_id, part.said)
        try:
            await self._store_members(part, parent, make, hold)
        except BaseException:
            await self._give_up(parent.id, hold)
            raise
        return added

    async def _store_members(
        self, part: Composite[Any], parent: Parent, make: Make, hold: _Hold
    ) -> None:
        members = iter(part.members)
        while some := list(islice(members, SLICE)):
            _refuse_named(some)
            plan = planned(some, level=1)
            await refuse_unknown_tasks(self._store, plan.calls, plan)
            await self._commit(plan, make, under=parent, hold=hold)
            if part.body is None:
                _remember(part.decoders, some, hold.stored)
            hold.stored += len(some)
        await self._store.commit(hold.end(parent.id))

    async def _give_up(self, parent_id: TaskId, hold: _Hold) -> None:
        """Cancel what is stored of a group whose members cannot all be."""
        await self._store.cancel(TaskFilter(ids=(parent_id,)), limit=1)
        while await self._store.cancel(TaskFilter(parent_id=parent_id), limit=SLICE):
            pass
        with suppress(RecordConflict):  # who took the chore does the same
            await self._store.commit(hold.end(parent_id))

    async def _commit(
        self,
        plan: Plan,
        make: Make,
        *,
        guards: Sequence[_Guard] = (),
        under: Parent | None = None,
        hold: _Hold | None = None,
    ) -> Sequence[Added]:
        async def store(calls: Sequence[Call[Any]]) -> Sequence[Added]:
            made = make(calls)
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
                records.append(hold.renewed(under.id if under else tied.tasks[0].id))
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
            return self._said(tasks, added, len(calls))

        return await self._middleware.around_submit(plan.calls, store)

    def _record(self, guard: _Guard, task_id: TaskId) -> Put:
        said = json.dumps({"task_id": task_id, "fingerprint": guard.fingerprint})
        window = self._settings.idempotency_window
        return Put(ONCE, guard.key, said, version=guard.version, due_in=window)


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
    for ids in _slices(named, SLICE):
        found = (await store.list(TaskFilter(ids=tuple(ids)), limit=SLICE)).tasks
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


def _as_list(part: Composite[Any]) -> Composite[Any] | None:
    """The composition with its members in a list; None if they are too many to be stored at once.
    Those that wait for each other are.
    """
    if part.said.order is ChildOrder.SEQUENCE:
        return part
    members = part.members
    if members.known is not None:
        is_small = members.known <= SLICE or any(each.name for each in members)
        return part if is_small else None
    rest = iter(members)
    first = list(islice(rest, SLICE + 1))
    if len(first) <= SLICE:
        return replace(part, members=Members(part.label, first))
    members.put_back(first, rest)
    return None


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


def _refuse_named(members: Sequence[Composable[Any]]) -> None:
    for member in members:
        if member.name is not None or member.siblings:
            raise InvalidOption(
                "after",
                f"members of a group of more than {SLICE:,} cannot wait for each other: they are "
                "stored in slices. Give them as a list",
            )


def _remember(known: list[Composable[Any]], more: Sequence[Composable[Any]], number: int) -> None:
    """Remember who can read the results of these: one for all, as long as they are alike."""
    one = known[0] if known else more[0]
    alike = isinstance(one, Link) and all(
        isinstance(each, Link) and each.definition is one.definition for each in more
    )
    if alike and len(known) <= 1:
        known[:] = [one]
        return
    known[:] = [*(known * number if len(known) == 1 else known), *more]
