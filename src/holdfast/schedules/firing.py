"""Fires the series that are due: any worker and any server does, none is the leader.

A series is taken for a while by its record's new version (`take_due`). The runs, the tasks and the
advanced series are one commit over that version, so of all who try one succeeds, and a process that
dies before has done nothing. Many series share a commit; if somebody edits one meanwhile, each is
written by itself. Whoever needs long for what it has taken, after a week of nobody there, writes in
between, and leaves the rest to be taken again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import uuid4

import orjson

from holdfast.core.chore import chore
from holdfast.core.flow import Flow, ScheduledRun, with_flow
from holdfast.core.gate import Gate, GateKind
from holdfast.core.metrics import LATENESS
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.schedule_state import TAG, schedule_tag
from holdfast.core.task import Added, NewTask, Reason, State, TaskId
from holdfast.counting import tally_of
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.errors import RecordConflict
from holdfast.flow.results import read_tasks
from holdfast.flow.trees import CANCEL_TREE
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher, work_for
from holdfast.ports.store import Store
from holdfast.recurrence import tz_version
from holdfast.schedules.budgeting import LEDGER, Budgets, OverBudget, Reserved, Wanted
from holdfast.schedules.companions import Companions, with_change, with_runs
from holdfast.schedules.deciding import MOST_OPEN, Decision, Fire, Note, decide, over_budget
from holdfast.schedules.occurrence import (
    OCCURRENCE,
    Occurrence,
    Origin,
    RunStatus,
    occurrence_key,
    put_occurrence,
)
from holdfast.schedules.retiming import retimed
from holdfast.schedules.series import (
    SERIES,
    Overlap,
    Series,
    Status,
    failed_document,
    load_series,
)
from holdfast.settings import Settings

log = EventLog("holdfast.schedules")

AT_A_TIME: Final = 200
PAGE: Final = 1000
LONGEST_REST: Final = 1.0
"""Seconds after which schedules are noticed that others have made."""
LEASE: Final = 30.0
"""Seconds that whoever took a series has to fire it before another one may."""
WRITE_AFTER: Final = 5.0
GIVE_UP_AFTER: Final = 20.0
_IN_TURN: Final = (Overlap.QUEUE_ONE, Overlap.QUEUE_ALL, Overlap.CANCEL_RUNNING)


class _Fired(NamedTuple):
    """What is written of one series, and why."""

    record: Record
    decision: Decision
    runs: Sequence[Occurrence]
    tasks: Sequence[NewTask]
    records: Sequence[Put | Delete]
    runs_fired: Sequence[NewTask]
    """Those of the tasks that are runs."""
    over: OverBudget | None = None


class Firer:
    """A maintenance agent."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        settings: Settings,
        *,
        companions: Companions = (),
        budgets: Budgets | None = None,
        stored: Sequence[Callable[[Sequence[Added]], Awaitable[None]]] = (),
    ) -> None:
        """`stored` are told of the tasks that were submitted."""
        self._companions = companions
        self._budgets = budgets
        self._store = store
        self._dispatcher = dispatcher
        self._stored = stored
        self._maker = TaskMaker(settings)
        self._tally = tally_of(store)
        self._keep = settings.retention
        self._window = settings.idempotency_window
        self._is_retimed = False
        self.fired = 0
        """How many runs it has fired so far."""

    async def tick(self) -> float:
        """Fire what is due, and rest right here until the next one is: to the point."""
        if not self._is_retimed:
            await self.retime()
            self._is_retimed = True
        next_due = await self.round()
        await asyncio.sleep(LONGEST_REST if next_due is None else min(LONGEST_REST, next_due))
        return 0.0

    async def round(self) -> float | None:
        """Fire all that is due; the seconds until the next one is."""
        while True:
            due = await self._store.take_due(SERIES, limit=AT_A_TIME, lease=LEASE)
            if due.records:
                await self._fire(due.records)
            if len(due.records) < AT_A_TIME:
                return due.next_due

    async def retime(self) -> None:
        """Work out anew when the series are due that were worked out with another tz database."""
        mark, after = f'"tz_version":{orjson.dumps(tz_version()).decode()}', None
        while page := await self._store.records(SERIES, limit=PAGE, after=after):
            for record in page:
                if mark not in record.document:
                    await self._retime_one(record, load_series(record))
            after = page[-1]

    async def _retime_one(self, record: Record, series: Series) -> None:
        if series.status is not Status.ACTIVE:
            return
        moved = retimed(series)
        if moved.next_at != series.next_at:
            log.warning(
                "schedule.moved", schedule=series.id, tz_version=moved.tz_version,
                was=series.next_at, next=moved.next_at,
            )  # fmt: skip
        with suppress(RecordConflict):  # somebody was quicker
            await self._store.commit(Changes(uuid4().hex, records=[moved.put(record.version)]))

    async def _fire(self, records: Sequence[Record]) -> None:
        began = written = time.monotonic()
        now = await self._store.now()
        taken = [(record, series) for record in records if (series := await self._read(record))]
        ids = [task_id for _, series in taken for task_id in series.open]
        ends, fired = await self._ends(ids), list[_Fired]()
        for record, series in taken:
            fired.append(self._fired(record, decide(series, now, ends), now))
            if time.monotonic() - written > WRITE_AFTER:
                await self._write(fired, now)
                fired, written = [], time.monotonic()
                if written - began > GIVE_UP_AFTER:
                    return
        await self._write(fired, now)

    async def _write(self, fired: Sequence[_Fired], now: datetime) -> None:
        try:
            await self._commit_within(fired, now)
        except RecordConflict:
            for each in fired:
                with suppress(RecordConflict):  # somebody has edited it, and says when it is due
                    await self._write_one(each, now)

    async def _write_one(self, fired: _Fired, now: datetime) -> None:
        try:
            await self._commit_within([fired], now)
        except RecordConflict:
            # A backfill may have been quicker with some of these runs: they are done.
            done = await self._known([put.key for put in fired.records if put.kind == OCCURRENCE])
            if not done:
                raise
            decision, series = fired.decision, fired.decision.series
            fires = [fire for fire in decision.fires if _key(series, fire) not in done]
            notes = [note for note in decision.notes if _key(series, note) not in done]
            left = decision._replace(fires=fires, notes=notes)
            await self._commit_within([self._fired(fired.record, left, now)], now)

    async def _commit_within(self, fired: Sequence[_Fired], now: datetime) -> None:
        """Write what the budgets allow, as they are at that instant."""
        while True:
            within, reserved = await self._within_budgets(fired, now)
            try:
                await self._commit(within, reserved)
            except RecordConflict as conflict:
                if conflict.kind != LEDGER:
                    raise
            else:
                return

    async def _within_budgets(
        self, fired: Sequence[_Fired], now: datetime
    ) -> tuple[Sequence[_Fired], Reserved]:
        wanted = [
            Wanted(each.decision.series, [task.id for task in each.runs_fired])
            for each in fired
            if each.runs_fired
        ]
        reserved = None
        if wanted and self._budgets is not None:
            reserved = await self._budgets.reserve(wanted, now)
        if reserved is None:
            return fired, Reserved()
        verdicts = iter(reserved.verdicts)
        within: list[_Fired] = []
        for each in fired:
            over = None
            if each.runs_fired:
                allowed, over = next(verdicts)
            if over is None:
                within.append(each)
                continue
            less = over_budget(each.decision, allowed, over.reason, over.until)
            again = self._fired(each.record, less, now, each.runs_fired[:allowed])
            within.append(again._replace(over=over))
        return within, reserved

    async def _known(self, keys: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            known = await self._store.records(OCCURRENCE, keys=some, limit=len(some))
            found |= {record.key for record in known}
        return found

    async def _read(self, record: Record) -> Series | None:
        series = load_series(record)
        if series.status is not Status.FAILED:
            return series
        log.error("schedule.failed", schedule=record.key, error=series.note)
        document = failed_document(record, series.note or "")
        put = Put(SERIES, record.key, document, record.version, record.group, record.sort)
        with suppress(RecordConflict):
            await self._store.commit(Changes(uuid4().hex, records=[put]))
        return None

    async def _ends(self, ids: Iterable[TaskId]) -> Mapping[TaskId, State]:
        found = await read_tasks(self._store, list(ids))
        return {task_id: task.state for task_id, task in found.items()}

    def _fired(
        self,
        record: Record,
        decision: Decision,
        now: datetime,
        tasks: Sequence[NewTask] | None = None,
    ) -> _Fired:
        """What to write; `tasks` are those of the runs, if they were made already."""
        series = decision.series
        if tasks is None:
            tasks = [self.task_of(series, fire) for fire in decision.fires]
        open_now = (*series.open, *(task.id for task in tasks))[-MOST_OPEN:]
        after = replace(series, open=open_now, runs=series.runs + len(tasks))
        said = [
            *(
                Occurrence(series.id, series.version, fire.at, RunStatus.FIRED, fire.origin, now,
                           task.id)
                for fire, task in zip(decision.fires, tasks, strict=True)
            ),
            *(
                Occurrence(series.id, series.version, note.at, note.status, reason=note.reason,
                           number=note.number, until=note.until)
                for note in decision.notes
            ),
        ]  # fmt: skip
        records: list[Put | Delete] = [after.put(record.version)]
        records += [put_occurrence(one, self._keep) for one in said]
        if decision.cancels:
            about = {"parents": list(decision.cancels), "reason": Reason.CANCELLED}
            records.append(chore(CANCEL_TREE, uuid4().hex, about))
        new = [*self.with_companions(series, tasks), *with_change(self._companions, after)]
        return _Fired(record, decision, said, new, records, tasks)

    def task_of(self, series: Series, fire: Fire) -> NewTask:
        """The task of one run."""
        template = series.template
        run = ScheduledRun(series.id, series.version, fire.at.isoformat(), fire.origin)
        gates = template.gates
        if series.overlap in _IN_TURN:
            gates = (*gates, Gate(GateKind.LIMIT, f"{TAG}:{series.id}", 1))
        new = template._replace(
            id=self._maker.new_id(),
            payload=with_flow(template.payload, Flow(run=run)),
            tags=(*template.tags, schedule_tag(series.id)),
            gates=gates,
        )
        return self._maker.traced([new], operation="fire")[0]

    def with_companions(self, series: Series, runs: Sequence[NewTask]) -> list[NewTask]:
        """The runs, behind them the notices that they want sent, and what else goes with them."""
        notices = [self._maker.notice(run) for run in runs if run.callback is not None]
        return [*runs, *notices, *with_runs(self._companions, series, runs)]

    async def _commit(self, fired: Sequence[_Fired], reserved: Reserved) -> None:
        tasks = [task for each in fired for task in each.tasks]
        tasks += reserved.notices
        records = [record for each in fired for record in each.records]
        records += reserved.records
        if not records:
            return
        added = await self._store.commit(Changes(uuid4().hex, tasks, records, self._window))
        await self._correct(fired, tasks, added)
        for each in fired:
            _tell(each.decision, each.over)
        for tell in self._stored if added else ():
            await tell(added)
        if tasks:
            self._dispatcher.added(work_for(tasks))
            self._tally.observe(LATENESS, values=_lateness(fired))
            self.fired += sum(len(each.decision.fires) for each in fired)
            counted = Counter(task.queue for task in tasks)
            log.info("schedule.fired", tasks=len(tasks), queues=dict(counted))

    async def _correct(
        self, fired: Sequence[_Fired], tasks: Sequence[NewTask], added: Sequence[Added]
    ) -> None:
        """Say so of runs that made no task: one with their unique key has not ended."""
        met = {
            new.id: each.task_id for new, each in zip(tasks, added, strict=True) if not each.created
        }
        if not met:
            return
        puts = [
            put_occurrence(
                run._replace(
                    status=RunStatus.SKIPPED, fired_at=None, task_id=None,
                    reason=f"task {met[run.task_id]} has its unique key and has not ended",
                ),
                self._keep,
            )
            for each in fired
            for run in each.runs
            if run.task_id is not None and run.task_id in met
        ]  # fmt: skip
        again = [put._replace(version=None) for put in puts]
        await self._store.commit(Changes(uuid4().hex, records=again))
        if self._budgets is not None:
            gone = [
                Wanted(
                    each.decision.series, [task.id for task in each.runs_fired if task.id in met]
                )
                for each in fired
            ]
            await self._budgets.release([each for each in gone if each.task_ids])


def _key(series: Series, run: Fire | Note) -> str:
    return occurrence_key(series.id, series.version, run.at)


def _tell(decision: Decision, over: OverBudget | None) -> None:
    """Say what was let go: a line for each reason, whatever their number."""
    if over is not None:
        log.warning(
            "budget.reached", budget=over.budget, schedule=decision.series.id,
            reason=over.reason, until=over.until,
        )  # fmt: skip
    told: dict[tuple[RunStatus, str], list[Note]] = {}
    for note in decision.notes:
        told.setdefault((note.status, note.reason), []).append(note)
    for (status, reason), notes in told.items():
        log.warning(
            "schedule.not_run", schedule=decision.series.id, status=status.value, reason=reason,
            at=notes[0].at.isoformat(), runs=sum(note.number for note in notes),
        )  # fmt: skip


class OccurrenceKeeper:
    """Forgets old occurrences. A maintenance agent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def tick(self) -> float:
        due = await self._store.take_due(OCCURRENCE, limit=500, lease=60.0)
        gone = [Delete(OCCURRENCE, record.key, record.version) for record in due.records]
        if gone:
            with suppress(RecordConflict):
                await self._store.commit(Changes(uuid4().hex, records=gone))
        return 0.1 if len(gone) == 500 else 60.0


def _lateness(fired: Sequence[_Fired]) -> list[float]:
    """How late each run is in seconds that was not fired on purpose at another time."""
    return [
        max(0.0, (run.fired_at - run.at).total_seconds())
        for each in fired
        for run in each.runs
        if run.origin is Origin.SCHEDULE and run.fired_at is not None
    ]
