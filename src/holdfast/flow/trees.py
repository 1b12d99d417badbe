"""Cancels and starts again what belongs together: a parent with all below it, and a culprit with
all that was dropped because of it.

Each is a chore: if whoever does it dies, somebody else does it again from the beginning, and finds
less to do.

**The order of starting again.** One that others wait for comes before them, or they would find an
end that is none any more. So children come before their parent, and the others by their ids. Only a
parent whose body has not returned comes before its children: they wait for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

from holdfast.announcing import announce_cancelled
from holdfast.core.attempt import Claim
from holdfast.core.chore import CANCEL_REST, FORGET_KEY, GIVE_UP
from holdfast.core.dropping import BAD_ENDS, DROPPED, culprit_of, note_of
from holdfast.core.flow import IN_PAYLOAD, children_latch, flow_of
from holdfast.core.gate import Count
from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Record
from holdfast.core.task import Json, Reason, State, Task, TaskId
from holdfast.errors import RecordConflict
from holdfast.flow.bodies import BODY, is_body_first, latch_of_body, latch_of_children
from holdfast.flow.children import children_of, failed_child
from holdfast.flow.chores import Chores, Do
from holdfast.flow.requeueing import SLICE, Requeuer
from holdfast.flow.results import read_tasks
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.settings import Settings

log = EventLog("holdfast.client")

CANCEL_TREE: Final = "cancel_tree"
START_TREE: Final = "start_tree"
START_AGAIN: Final = "start_again"

_CANCELLED: Final = UNFINISHED | {State.CANCELLED}


def is_parent(task: Task) -> bool:
    """Whether it has children, or had any."""
    if IN_PAYLOAD in task.payload:
        flow = flow_of(task.payload)
        if flow is not None and flow.children is not None:
            return True
    latch = children_latch(task.id)
    return any(gate.key == latch for gate in task.gates)


async def _nothing(_: Json) -> None:
    return


class Trees:
    """The chores that concern several tasks."""

    def __init__(self, store: Store, dispatcher: Dispatcher, settings: Settings) -> None:
        self._store = store
        self._keep = settings.dead_letter_retention
        self.requeuer = Requeuer(store, dispatcher, settings)
        self.chores = Chores(store, self.known, sweep=settings.sweep)

    @property
    def known(self) -> Mapping[str, Do]:
        return {
            CANCEL_TREE: self._cancel_tree,
            CANCEL_REST: self._cancel_rest,
            START_TREE: self._start_tree,
            START_AGAIN: self._start_again,
            GIVE_UP: self.give_up,
            FORGET_KEY: _nothing,
        }

    async def culprits(self, ids: Sequence[TaskId]) -> list[TaskId]:
        """Those of the tasks because of which others were dropped."""
        if not await self._store.records(DROPPED, limit=1):
            return []
        return [one for one in ids if await self._store.records(DROPPED, group=one, limit=1)]

    # Cancelling.

    async def give_up(self, about: Json) -> None:
        """Cancel a group that will not be stored whole, and let its parent end."""
        parent_id = TaskId(about["parent"])
        await self._cancel_tree({"parents": [parent_id], "reason": Reason.CANCELLED})
        count = Count(latch_of_children(parent_id), -1)
        await self._store.commit(Changes(uuid4().hex, counts=(count,)))

    async def cancel(self, parents: Sequence[TaskId]) -> None:
        """Cancel these, and all below them."""
        about = {"parents": list(parents), "reason": Reason.CANCELLED}
        await self.chores.begin(CANCEL_TREE, about)

    async def _cancel_tree(self, about: Json) -> None:
        reason, waiting = Reason(about["reason"]), [TaskId(one) for one in about["parents"]]
        await self._cancel(waiting, reason)
        while waiting:
            parent_id, unfinished = waiting.pop(), list[TaskId]()
            # Also below those that are cancelled: this may be the second time.
            async for child in children_of(self._store, parent_id, states=_CANCELLED):
                if is_parent(child):
                    waiting.append(child.id)
                if child.state in UNFINISHED:
                    unfinished.append(child.id)
            await self._cancel(unfinished, reason)

    async def _cancel_rest(self, about: Json) -> None:
        """A child did not go well: the others are not needed any more."""
        parent_id = TaskId(about["parent"])
        culprit = await failed_child(self._store, parent_id)
        if culprit is None:  # it was started again
            return
        rest = [child async for child in children_of(self._store, parent_id, states=UNFINISHED)]
        for start in range(0, len(rest), SLICE):
            some = rest[start : start + SLICE]
            notes = [note_of(child.id, culprit_of(culprit), self._keep) for child in some]
            await self._store.commit(Changes(uuid4().hex, records=notes))
            await self._cancel([child.id for child in some], Reason.DEPENDENCY_FAILED)
        parents = [child.id for child in rest if is_parent(child)]
        await self._cancel_tree({"parents": parents, "reason": Reason.DEPENDENCY_FAILED})

    async def _cancel(self, ids: Sequence[TaskId], reason: Reason) -> None:
        for start in range(0, len(ids), SLICE):
            some = tuple(ids[start : start + SLICE])
            changed = await self._store.cancel(TaskFilter(ids=some), limit=len(some), reason=reason)
            announce_cancelled(log, changed)

    # Starting again.

    async def _start_tree(self, about: Json) -> None:
        """Start a parent again, with all below it that did not complete."""
        root = await self._store.get(TaskId(about["root"]))
        if root is not None:
            await self._start([task async for task in self._in_order(root)])

    async def _start_again(self, about: Json) -> None:
        """Start all again that was dropped because of culprits that were started again."""
        found = await read_tasks(self._store, [TaskId(one) for one in about["culprits"]])
        for culprit in found.values():
            if culprit.state not in BAD_ENDS:  # else it failed again, and so would they
                await self._revive(culprit.id)

    async def _revive(self, culprit: TaskId) -> None:
        notes = [note async for note in self._notes(culprit)]
        found = await read_tasks(self._store, [TaskId(note.key) for note in notes])
        dropped = [task for task in found.values() if task.state in BAD_ENDS]
        # Whoever was dropped because of another one ended after it.
        dropped.sort(key=lambda task: (task.finished_at or task.created_at, task.id))
        ordered: list[Task] = []
        for task in dropped:
            if task.state is State.CANCELLED and is_parent(task):
                ordered += [each async for each in self._in_order(task)]
            else:
                ordered.append(task)
        await self._start(ordered)
        await self._forget(notes)

    async def _start(self, tasks: Sequence[Task]) -> None:
        ids = [task.id for task in tasks]
        await self.requeuer.in_order(ids)
        for task in tasks:
            if is_body_first(Claim.of(task)) and await one_record(self._store, BODY, task.id):
                # Its body has returned: its children need not wait for that again.
                count = Count(latch_of_body(task.id), -1)
                await self._store.commit(Changes(uuid4().hex, counts=(count,)))
        for culprit in await self.culprits(ids):
            await self._revive(culprit)

    async def _in_order(self, parent: Task) -> AsyncIterator[Task]:
        """The parent and all below it that did not complete, in the order of starting again."""
        is_pending = is_body_first(Claim.of(parent)) and not await one_record(
            self._store, BODY, parent.id
        )
        if is_pending:
            yield parent
        async for child in children_of(self._store, parent.id, states=BAD_ENDS):
            if is_parent(child):
                async for each in self._in_order(child):
                    yield each
            else:
                yield child
        if not is_pending:
            yield parent

    async def _notes(self, culprit: TaskId) -> AsyncIterator[Record]:
        after: Record | None = None
        while True:
            some = await self._store.records(DROPPED, group=culprit, limit=SLICE, after=after)
            for note in some:
                yield note
            if len(some) < SLICE:
                return
            after = some[-1]

    async def _forget(self, notes: Sequence[Record]) -> None:
        for start in range(0, len(notes), SLICE):
            some = notes[start : start + SLICE]
            gone = [Delete(DROPPED, note.key, note.version) for note in some]
            try:
                await self._store.commit(Changes(uuid4().hex, records=gone))
            except RecordConflict:
                for one in gone:  # one of them was dropped again meanwhile
                    with suppress(RecordConflict):
                        await self._store.commit(Changes(uuid4().hex, records=(one,)))
