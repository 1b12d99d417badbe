"""The verbs a caller has. The one door to a store: apps, handles, CLI and servers come in here.

Everything is async; `app.py` makes sync verbs of it. Nothing here knows which store or dispatcher
it talks to.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from holdfast.announcing import Announcer, announce_cancelled
from holdfast.core import keys
from holdfast.core.attempt import History
from holdfast.core.callback import notice_id, requeues, with_notices
from holdfast.core.fleet import WorkerInfo, for_tasks
from holdfast.core.gate import GateKind
from holdfast.core.lifecycle import CANCELLABLE_AT_ONCE, REQUEUEABLE, TERMINAL, UNFINISHED
from holdfast.core.query import Order, Page, TaskFilter
from holdfast.core.stats import Standing, Stats
from holdfast.core.task import Added, NewTask, State, Task, TaskId, WorkerId
from holdfast.core.why import Why, explain
from holdfast.counting import tally_of
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Composable, Composite
from holdfast.definitions.context import current_context
from holdfast.definitions.handle import TaskRef
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.definitions.readers import read_key
from holdfast.definitions.registry import Registry
from holdfast.errors import InvalidOption, InvalidTransition, TaskNotFound
from holdfast.filters import (
    FilterKeywords,
    chosen_by,
    dead_unless_told,
    page_size,
    read_id,
    where,
)
from holdfast.fleet import as_now
from holdfast.flow.coalescing import Coalescer
from holdfast.flow.event_verbs import EventVerbs
from holdfast.flow.limit_verbs import LimitVerbs
from holdfast.flow.limits import with_due
from holdfast.flow.slicing import Slices
from holdfast.flow.standing import with_others
from holdfast.flow.submitting import Composer, refuse_unknown_tasks
from holdfast.flow.tree_verbs import TreeVerbs
from holdfast.flow.trees import START_AGAIN, START_TREE, Trees, is_parent
from holdfast.logs import EventLog
from holdfast.pauses import QueueVerbs
from holdfast.ports.dispatcher import Dispatcher, work_for
from holdfast.ports.store import Store
from holdfast.schedule_verbs import ScheduleVerbs
from holdfast.settings import Settings
from holdfast.tokens import Tokens

if TYPE_CHECKING:
    from holdfast.remote import RemoteWorkers

log = EventLog("holdfast.client")

SLICE = 1000
"""How many tasks one step of a bulk verb changes at most, so that none holds the store for long."""
UNCOUNTED = 1_000_000_000
ASK_CLOCK_EVERY = 1.0

T = TypeVar("T")


class Client(QueueVerbs, TreeVerbs, LimitVerbs, EventVerbs, ScheduleVerbs):
    """Submits, finds and steers the tasks of one store."""

    def __init__(
        self, store: Store, dispatcher: Dispatcher, registry: Registry, settings: Settings
    ) -> None:
        self.store = store
        self.dispatcher = dispatcher
        self.registry = registry
        self.settings = settings
        self.tokens = Tokens(store)
        self._maker = TaskMaker(settings, registry.queues)
        self.new_tasks = self._maker.make
        """The tasks of calls, for somebody else to store."""
        self._composer = Composer(
            store, dispatcher, registry.middleware, settings, self._said, self._maker.traced
        )
        self._trees = Trees(store, dispatcher, settings)
        self._clock: tuple[datetime, float] | None = None
        self._announcer = Announcer(log)
        self._tally = tally_of(store)

    @cached_property
    def remote(self) -> RemoteWorkers:
        """The verbs of workers over HTTP. Only a server needs it."""
        from holdfast.remote import RemoteWorkers  # noqa: PLC0415 - others should not pay

        return RemoteWorkers(self.store, self.dispatcher, self.registry, self.settings)

    async def submit(self, call: Call[Any]) -> Added:
        """Store one task. When it returns, the task is durable."""
        return (await self.submit_many([call]))[0]

    async def submit_many(
        self,
        calls: Sequence[Call[Any]],
        *,
        mark: bytes | None = None,
        traceparent: str | None = None,
    ) -> Sequence[Added]:
        """Store many tasks in one step, all or none; the answers come in the same order. The ids of
        new ones bear the `mark` of this key (`core.ids.marked`). Those that name no trace belong to
        `traceparent`, else to that of the caller.
        """
        if not calls:
            return []
        self._refuse_to_wait_for_itself()
        installed = self.registry.middleware
        if installed.submit:
            add = partial(self._add, mark=mark, traceparent=traceparent)
            added = await installed.around_submit(calls, add)
        else:
            added = await self._add(calls, mark, traceparent)
        for tell in installed.stored:
            await tell(added)
        return added

    async def submit_parts(
        self,
        parts: Sequence[Composable[Any]],
        *,
        mark: bytes | None = None,
        traceparent: str | None = None,
    ) -> Sequence[Added]:
        """`submit_many` for compositions: one answer for each, that of its outermost task."""
        self._refuse_to_wait_for_itself()
        # Its outermost tasks begin the trace of all: the composer sees to the spans.
        make = partial(self.new_tasks, mark=mark, traceparent=traceparent, has_span=False)
        return await self._composer.submit(parts, make)

    def slices(self, part: Composite[Any]) -> Slices:
        """A group that is too large to be stored at once, to be stored in slices."""
        make = partial(self.new_tasks, has_span=False)
        return Slices(self.store, self._composer, self._trees, part, make)

    async def _add(
        self, calls: Sequence[Call[Any]], mark: bytes | None, traceparent: str | None
    ) -> Sequence[Added]:
        await refuse_unknown_tasks(self.store, calls)
        window = self.settings.idempotency_window
        with keys.as_given():
            if self.registry.coalesced and any(call.coalescing is not None for call in calls):
                make = partial(self.new_tasks, mark=mark, traceparent=traceparent)
                tasks, added = await Coalescer(self.store, window).submit(calls, make)
            else:
                tasks = self.new_tasks(calls, mark, traceparent)
                with self._tally.timed("add"):
                    added = await self.store.add(tasks, idempotency_window=window)
        self.dispatcher.added(work_for(tasks))
        return self._said(tasks, added, len(calls))

    def submit_within(self, calls: Sequence[Call[Any]], connection: object) -> Sequence[Added]:
        """Store tasks inside the transaction that is open on the caller's connection.

        Waking is for the commit to do, where the store can. Where the dispatcher cannot hear it, a
        guess is made when that will be; else workers find them by looking.
        """

        def add(calls: Sequence[Call[Any]]) -> Sequence[Added]:
            window = self.settings.idempotency_window
            tasks = self.new_tasks(calls)
            with keys.as_given():
                added = self.store.add_within(connection, tasks, idempotency_window=window)
            self.dispatcher.added_within(work_for(tasks))
            return self._said(tasks, added, len(calls))

        return self.registry.middleware.around_submit_now(calls, add)

    async def submit_within_async(
        self, calls: Sequence[Call[Any]], connection: object
    ) -> Sequence[Added]:
        """The same through an asynchronous connection."""

        async def add(calls: Sequence[Call[Any]]) -> Sequence[Added]:
            window, store = self.settings.idempotency_window, self.store
            tasks = self.new_tasks(calls)
            with keys.as_given():
                added = await store.add_within_async(connection, tasks, idempotency_window=window)
            self.dispatcher.added_within(work_for(tasks))
            return self._said(tasks, added, len(calls))

        return await self.registry.middleware.around_submit(calls, add)

    async def get_by_key(
        self, key: str, *, name: str | None = None, owner: str | None = None
    ) -> Task:
        """The newest task with this idempotency or unique key, of this name if one is given, and of
        this owner or of none; `TaskNotFound` if there is none. A key may be found as long as its
        task is kept. There is no index for it: on a store of millions of tasks this takes seconds.
        """
        wanted = read_key("key", key)
        for chosen in (
            where(idempotency_key=wanted, name=name, owner=owner),
            where(unique_key=wanted, name=name, owner=owner),
        ):
            page = await self.list(chosen, limit=1)
            if page.tasks:
                return page.tasks[0]
        raise TaskNotFound(wanted)

    async def list(
        self,
        which: TaskFilter | None = None,
        /,
        *,
        limit: int = 100,
        after: str | None = None,
        oldest_first: bool = False,
        by_end: bool = False,
        **words: Unpack[FilterKeywords],
    ) -> Page:
        """A page of tasks, newest first unless told otherwise. Its `next`, passed as `after`,
        brings the next one. With `by_end`, those that have ended, the last end first.
        """
        most = page_size(limit)
        chosen = chosen_by(which, words, self.registry.full_name)
        order = Order.of(oldest_first=oldest_first, by_end=by_end)
        page = await self.store.list(chosen, limit=most, after=after, order=order)
        return replace(page, tasks=tuple(map(keys.shown, page.tasks)))

    async def count(
        self,
        which: TaskFilter | None = None,
        /,
        *,
        limit: int = UNCOUNTED,
        **words: Unpack[FilterKeywords],
    ) -> int:
        """How many tasks match, counting no further than `limit`."""
        return await self.store.count(chosen_by(which, words, self.registry.full_name), limit=limit)

    async def history(self, task_id: TaskRef) -> History:
        """Every attempt and event of a task."""
        wanted = read_id(task_id)
        history = _found(await self.store.history(wanted), wanted)
        ends = 1 + requeues(history)
        notices = [await self.store.get(notice_id(wanted, end)) for end in range(ends)]
        return with_notices(history, [notice for notice in notices if notice])

    async def why(self, task_id: TaskRef) -> Why:
        """Why the task is not running, in words, with its place in line."""
        return explain(await self.standing(task_id))

    async def standing(self, task_id: TaskRef) -> Standing:
        """The facts behind `why`."""
        wanted = read_id(task_id)
        standing = _found(await self.store.standing(wanted), wanted)
        if standing.gate is not None and standing.gate.kind is GateKind.BREAKER:
            standing = replace(standing, gate=await with_due(self.store, standing.gate))
        if standing.task.state in CANCELLABLE_AT_ONCE:
            workers = tuple(await self._as_now(standing.workers))
            waits_for = await self._waits_for(standing.task)
            standing = replace(standing, workers=workers, waits_for=waits_for)
        return await with_others(self.store, standing)

    async def cancel(self, task_id: TaskRef) -> Task:
        """Cancel one task, and all below it: at once what has not started; of what runs the workers
        are asked to stop it.

        Asking twice is no error; cancelling what has ended is (`InvalidTransition`).
        """
        wanted = read_id(task_id)
        found = await self.store.get(wanted)
        if found is not None and found.state not in TERMINAL and is_parent(found):
            await self._trees.cancel([wanted])
            return await self.get(wanted)
        changed = await self._cancel(TaskFilter(ids=(wanted,)), limit=1)
        if changed:
            return keys.shown(changed[0])
        task = await self.get(wanted)
        if task.cancel_requested and task.state is State.RUNNING:
            return task
        raise _refused(task, "cancel", {*CANCELLABLE_AT_ONCE, State.RUNNING})

    async def cancel_many(
        self,
        which: TaskFilter | None = None,
        /,
        *,
        dry_run: bool = False,
        **words: Unpack[FilterKeywords],
    ) -> int:
        """Cancel every matching task that has not ended, and all below it; how many of those that
        match were cancelled or asked.

        With `dry_run` nothing is changed and they are only counted; running ones that were asked
        before are counted too.
        """
        chosen, done = chosen_by(which, words, self.registry.full_name), 0
        if dry_run:
            return await self._count_in(chosen, UNFINISHED)
        while True:
            changed = await self._cancel(chosen, limit=SLICE)
            done += len(changed)
            if len(changed) < SLICE:
                return done

    async def retry(self, task_id: TaskRef) -> Task:
        """Start one task again: an ended one anew, one that waits for its time right now. With a
        parent all below it that did not complete, and with a culprit all that was dropped because
        of it.
        """
        wanted = read_id(task_id)
        if await self._started_tree(wanted):
            return await self.get(wanted)
        changed = await self._requeue(TaskFilter(ids=(wanted,)), limit=1)
        if changed:
            return keys.shown(changed[0])
        task = await self.get(wanted)
        if task.state in TERMINAL:
            raise InvalidOption(
                "unique_key",
                f"task {wanted} cannot start again: {task.unique_key!r} belongs to another task of "
                f"the same name that has not ended. Wait for that one, or cancel it.",
            )
        raise _refused(task, "retry", REQUEUEABLE - {State.QUEUED})

    async def replay(
        self,
        which: TaskFilter | None = None,
        /,
        *,
        pace: float | None = None,
        dry_run: bool = False,
        **words: Unpack[FilterKeywords],
    ) -> int:
        """Start matching tasks again, dead letters unless `state` says otherwise; how many.

        With `pace` (tasks per second) they become eligible one after another, oldest first. With
        `dry_run` nothing is changed and they are only counted; queued ones that do not wait for
        their time, and are passed over, are counted too.
        """
        if pace is not None and not 0 < pace <= 1e6:
            raise InvalidOption("pace", f"expected tasks per second, more than 0, got {pace!r}")
        chosen = dead_unless_told(chosen_by(which, words, self.registry.full_name))
        if dry_run:
            return await self._count_in(chosen, REQUEUEABLE)
        # What is replayed may end and match again, so the number is fixed before the first step.
        # A pace counts from its first task: it needs one step for all.
        total, done = await self.store.count(chosen, limit=UNCOUNTED), 0
        while done < total:
            step = total if pace is not None else min(SLICE, total - done)
            changed = await self._requeue(chosen, limit=step, pace=pace)
            done += len(changed)
            if len(changed) < step or pace is not None:
                break
        return done

    async def discard(
        self,
        which: TaskFilter | None = None,
        /,
        *,
        dry_run: bool = False,
        **words: Unpack[FilterKeywords],
    ) -> int:
        """Forget matching tasks for good, dead letters unless `state` says otherwise; how many.

        Tasks that have not ended are left alone. With `dry_run` nothing is changed and they are
        only counted.
        """
        chosen, done = dead_unless_told(chosen_by(which, words, self.registry.full_name)), 0
        if dry_run:
            return await self._count_in(chosen, TERMINAL)
        while True:
            gone = await self.store.discard(chosen, limit=SLICE)
            done += gone
            if gone < SLICE:
                if done:
                    log.info("tasks.discarded", tasks=done)
                return done

    async def stats(self) -> Stats:
        """The store in numbers."""
        return await self.store.stats()

    async def workers(self) -> Sequence[WorkerInfo]:
        """All workers known, newest first, dead and stopped ones too until they are pruned.

        Their `load` is what the store has leased to them, up to their capacity; where more than
        100 are alive, what those in Python said at their last heartbeat. Those that have not beaten
        for longer than a lease are `silent`: nobody who could bury them is alive.
        """
        return await self._as_now(for_tasks(await self.store.workers()))

    async def ask_to_drain(self, worker_id: str) -> bool:
        """Ask a worker to finish what it has and leave. False if no such worker is alive."""
        asked = await self.store.ask_to_drain(WorkerId(worker_id))
        if asked:
            log.info("worker.drain_requested", worker_id=worker_id)
        return asked

    async def prune(self) -> int:
        """Forget what is older than `retention` and `dead_letter_retention`; how many tasks."""
        done = 0
        while True:
            gone = await self.store.prune(
                retention=self.settings.retention,
                dead_letter_retention=self.settings.dead_letter_retention,
                limit=SLICE,
            )
            done += gone
            if gone < SLICE:
                return done

    async def migrate(self) -> Sequence[int]:
        """Bring the store's schema to this release's version; the versions applied."""
        return await self.store.migrate()

    async def schema_version(self) -> int:
        """The version of the store's schema."""
        return await self.store.schema_version()

    async def now(self) -> datetime:
        """The time by the store's clock, which is asked once a second at most."""
        at = time.monotonic()
        if self._clock is None or at - self._clock[1] > ASK_CLOCK_EVERY:
            self._clock = (await self.store.now(), at)
        return self._clock[0] + timedelta(seconds=at - self._clock[1])

    async def doctor(self) -> Sequence[str]:
        """What is wrong with the store, in sentences; nothing if it is well."""
        return await self.store.check()

    def _said(
        self, tasks: Sequence[NewTask], added: Sequence[Added], number: int
    ) -> Sequence[Added]:
        """The answers to those that were called for, without those to their notices."""
        if self._announcer.is_open():
            self._announcer.submitted(tasks[:number], added[:number])
        return added[:number]

    def _refuse_to_wait_for_itself(self) -> None:
        running = current_context()
        if running is not None and running.in_transaction and "one_writer" in self.store.abilities:
            raise InvalidOption(
                "connection",
                "this submit would wait for the transaction that the handler itself has open. "
                "Submit through it: `f.options(connection=conn).submit_async(…)`, where `conn` is "
                "what `ctx.transaction()` gave.",
            )

    async def _as_now(self, workers: Sequence[WorkerInfo]) -> Sequence[WorkerInfo]:
        return await as_now(self.store, workers, now=await self.now(), lease=self.settings.lease)

    async def _count_in(self, which: TaskFilter, states: frozenset[State]) -> int:
        """How many of the matching tasks are in one of these states."""
        wanted = states if which.states is None else states & which.states
        return await self.store.count(replace(which, states=wanted), limit=UNCOUNTED)

    async def _cancel(self, which: TaskFilter, *, limit: int) -> Sequence[Task]:
        changed = await self.store.cancel(which, limit=limit)
        announce_cancelled(log, changed)
        parents = [task.id for task in changed if is_parent(task)]
        if parents:
            await self._trees.cancel(parents)
        return changed

    async def _started_tree(self, task_id: TaskId) -> bool:
        """Whether it is a parent that has ended: then all of it was started again."""
        task = await self.store.get(task_id)
        if task is None or task.state not in TERMINAL or not is_parent(task):
            return False
        await self._trees.chores.begin(START_TREE, {"root": task_id})
        return True

    async def _requeue(
        self, which: TaskFilter, *, limit: int, pace: float | None = None
    ) -> Sequence[Task]:
        changed = await self._trees.requeuer.requeue(which, limit=limit, pace=pace)
        culprits = await self._trees.culprits([task.id for task in changed])
        if culprits:
            await self._trees.chores.begin(START_AGAIN, {"culprits": culprits})
        return changed


def _found(thing: T | None, task_id: TaskId) -> T:
    if thing is None:
        raise TaskNotFound(task_id)
    return thing


def _refused(task: Task, action: str, allowed: Collection[State]) -> InvalidTransition:
    return InvalidTransition(task.id, action, task.state, ", ".join(sorted(allowed)))
