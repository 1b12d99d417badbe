"""The schedules of one store: made, found, changed, and told about.

Every change is one write over the version that was read. Who loses a race reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Unpack
from uuid import uuid4

from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.task import Added, Json, NewTask, TaskId
from holdfast.definitions.call import Call
from holdfast.definitions.declaration import ScheduleKeywords
from holdfast.definitions.instants import read_instant
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.definitions.open import open_call
from holdfast.definitions.options import NO_OPTIONS
from holdfast.definitions.registry import Registry
from holdfast.errors import BudgetExceeded, InvalidOption, RecordConflict, ScheduleNotFound
from holdfast.filters import page_size
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher, work_for
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.recurrence import Kind, Schedule
from holdfast.schedules.budgeting import LEDGER, Budgets, Reserved, Wanted
from holdfast.schedules.companions import Companions, with_change
from holdfast.schedules.deciding import Fire, resumed
from holdfast.schedules.firing import Firer
from holdfast.schedules.occurrence import (
    OCCURRENCE,
    Occurrence,
    Origin,
    RunStatus,
    occurrence_key,
    put_occurrence,
    read_occurrence,
    sort_of,
)
from holdfast.schedules.reading import (
    read_about,
    read_behaviour,
    read_catch_up,
    read_rule,
    read_schedule_name,
)
from holdfast.schedules.series import (
    DEFAULT_CATCH_UP,
    SERIES,
    About,
    Series,
    Status,
    load_series,
)
from holdfast.settings import Settings

log = EventLog("holdfast.schedules")

MOST_BACKFILLED: Final = 1000
PAGE: Final = 1000
_FRESH: Final = ("id", "trace", "idempotency_key", "fingerprint", "run_at", "expires_at")
_PLAIN: Final = NewTask(TaskId(""), "", b"")


class SchedulePage(NamedTuple):
    """Schedules by name; `next`, passed as `after`, brings those after."""

    schedules: Sequence[Series]
    next: str | None


class OccurrencePage(NamedTuple):
    """Runs, newest first; `next`, passed as `after`, brings those before."""

    runs: Sequence[Occurrence]
    next: str | None


@dataclass(frozen=True, slots=True)
class Book:
    """The verbs."""

    store: Store
    dispatcher: Dispatcher
    registry: Registry
    settings: Settings
    maker: TaskMaker
    companions: Companions = ()
    budgets: Budgets | None = None

    async def create(
        self,
        call: Call[Any] | str,
        rule: object,
        /,
        *,
        tz: str | None = None,
        name: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        **words: Unpack[ScheduleKeywords],
    ) -> Series:
        """Submit this call again and again: `create(report.call(7), "0 9 * * 1-5", tz="Europe/
        Berlin")`, or by the task's name with its JSON `arguments`. Nothing is stored if anything is
        wrong.
        """
        series = self.made(
            self.template(call, arguments), rule, tz=tz, name=name, now=await self.store.now(),
            words=words,
        )  # fmt: skip
        await self._check_channels(series)
        try:
            await self.commit(series, series.put(0))
        except RecordConflict:
            raise InvalidOption(
                "name", f"there is a schedule {series.id!r} already; update it, or choose another"
            ) from None
        log.info("schedule.created", schedule=series.id, next=series.next_at)
        await self._tell(series.id, series.due_at)
        return series

    async def add(self, many: Sequence[Series]) -> None:
        """Store series that were `made`, all of them in one commit or none."""
        for each in many:
            await self._check_channels(each)
        new = [task for each in many for task in with_change(self.companions, each)]
        await self._store_all(Changes(uuid4().hex, new, [each.put(0) for each in many]))
        for each in many:
            log.info("schedule.created", schedule=each.id, next=each.next_at)
            await self._tell(each.id, each.due_at)

    def made(
        self,
        template: NewTask,
        rule: object,
        *,
        tz: str | None,
        name: str | None,
        now: datetime,
        words: Mapping[str, Any],
        may_be_over: bool = False,
    ) -> Series:
        """A new series, checked, not stored."""
        read = read_rule(rule, tz)
        following = self._first(read, now, may_be_over=may_be_over)
        about = read_about(words, About(owner=template.owner))
        series = Series(
            id=f"s-{uuid4().hex}" if name is None else read_schedule_name(name),
            rule=read,
            template=template._replace(owner=about.owner),
            catch_up=read_catch_up(words, DEFAULT_CATCH_UP),
            about=about,
            created_at=now,
            updated_at=now,
            **read_behaviour(words),
        )
        return series.going_on(following)

    async def get(self, name: str) -> Series | None:
        """One schedule; None if there is none of that name."""
        record = await one_record(self.store, SERIES, name)
        return None if record is None else load_series(record)

    async def list(
        self, *, owner: str | None = None, after: str = "", limit: int = 100
    ) -> SchedulePage:
        """Schedules by name, of everybody or of one owner."""
        size = page_size(limit)
        start = Record(SERIES, after, 0, "", sort=after) if after else None
        found = await self.store.records(SERIES, limit=size + 1, group=owner, after=start)
        series = [load_series(record) for record in found[:size]]
        return SchedulePage(series, series[-1].id if len(found) > size else None)

    async def update(
        self,
        name: str,
        /,
        *,
        call: Call[Any] | None = None,
        rule: object | None = None,
        tz: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        **words: Unpack[ScheduleKeywords],
    ) -> Series:
        """Change what is given, keep the rest; a `call` is all that it submits. It goes on from
        now: nothing is run twice, nor made up for.
        """
        now = await self.store.now()

        def change(series: Series) -> Series:
            behaviour = read_behaviour(words)
            about = read_about(words, series.about)
            template = series.template if call is None else self.template(call)
            template = template._replace(owner=about.owner)
            if arguments is not None:
                made = self.template(template.name, arguments, queue=template.queue)
                template = template._replace(
                    payload=made.payload,
                    gates=made.gates,
                    lock=made.lock or template.lock,
                    unique_key=made.unique_key or template.unique_key,
                )
            read = series.rule
            if rule is not None or tz is not None:
                given = {**series.rule.to_json(), "tz": tz} if rule is None else rule
                read = read_rule(given, tz if rule is not None else None)
            changed = series.edit(
                now, rule=read, template=template, about=about, edited=True,
                catch_up=read_catch_up(words, series.catch_up), **behaviour,
            )  # fmt: skip
            if read == series.rule or series.status is Status.PAUSED:
                return changed
            following = self._first(read, max(now, series.last_at or now))
            return replace(changed.going_on(following), note=None)

        return await self._change(name, change)

    async def pause(
        self, name: str, *, until: datetime | None = None, note: str | None = None
    ) -> Series:
        """Run no more, until somebody resumes it or for a while."""
        now = await self.store.now()
        until = None if until is None else read_instant("until", until)
        if until is not None and until <= now:
            raise InvalidOption("until", f"expected a time to come, got {until.isoformat()}")

        def change(series: Series) -> Series:
            if series.status in (Status.COMPLETED, Status.FAILED):
                raise InvalidOption(
                    "name", f"expected an active schedule; {name!r} is {series.status}"
                )
            paused = replace(series, status=Status.PAUSED, note=note, paused_until=until)
            return replace(paused, updated_at=now)

        return await self._change(name, change)

    async def resume(self, name: str) -> Series:
        """Go on from now, without what would have run meanwhile."""
        now = await self.store.now()

        def change(series: Series) -> Series:
            if series.status is Status.ACTIVE:
                return series
            following = resumed(series, now)
            if following.status is Status.COMPLETED:
                raise InvalidOption(
                    "name", f"expected a run to come; {name!r} has none. Give it another rule"
                )
            return following

        return await self._change(name, change)

    async def skip(self, name: str, at: datetime | None = None) -> Series:
        """Leave out the run at this instant, or the next one that is not left out yet.

        `InvalidOption` if there is no run to come, or none then.
        """

        def change(series: Series) -> Series:
            run = series.next_at
            if at is not None and run is not None and run < at:
                run = series.rule.next_after(at - timedelta(microseconds=1))
            while at is None and run is not None and run in series.skips:
                run = series.rule.next_after(run)
            if run is None or series.status is not Status.ACTIVE:
                raise InvalidOption("name", f"schedule {name!r} has no run to come")
            if at is not None and run != at:
                raise InvalidOption("at", f"schedule {name!r} has no run at {at.isoformat()}")
            return replace(series, skips=tuple(dict.fromkeys((*series.skips, run))))

        return await self._change(name, change)

    async def trigger(self, name: str) -> TaskId:
        """Run it now, beside its rule: the next runs stay as they are."""
        now = await self.store.now()
        series, _ = await self._read(name)
        return (await self._fire(series, [(Fire(now, Origin.MANUAL), 0)], now))[0]

    async def backfill(
        self, name: str, begin: datetime, end: datetime, *, most: int = MOST_BACKFILLED
    ) -> Sequence[TaskId]:
        """Run what the rule says for this range up to now, but for the runs that were fired
        already, as far as that is kept (`retention`); `end` is not inside. `InvalidOption` if there
        are more than `most`: nothing is run then. The runs to come stay as they are.
        """
        if not 1 <= most <= MOST_BACKFILLED:
            raise InvalidOption("most", f"expected 1 to {MOST_BACKFILLED:,}, got {most!r}")
        begin, end = read_instant("begin", begin), read_instant("end", end)
        if begin >= end:
            raise InvalidOption("end", f"expected a time after {begin.isoformat()}")
        while True:
            series, _ = await self._read(name)
            now = await self.store.now()
            runs = series.rule.between(begin, max(begin, min(end, now)), limit=most + 1)
            if len(runs) > most:
                raise InvalidOption("most", f"there are more than {most:,} runs in this range")
            fires = await self._not_fired(series, runs)
            try:
                return await self._fire(series, fires, now)
            except RecordConflict:  # somebody else has fired one of them meanwhile
                continue

    async def delete(self, name: str) -> bool:
        """Forget the schedule. Its tasks stay. False if there is none."""
        record = await one_record(self.store, SERIES, name)
        if record is None:
            return False
        await self.commit(load_series(record), Delete(SERIES, name))
        await self._tell(name, None)
        log.info("schedule.deleted", schedule=name)
        return True

    async def runs(self, name: str, *, after: str = "", limit: int = 100) -> OccurrencePage:
        """What became of its runs, newest first."""
        size = page_size(limit)
        start = None
        if after:
            sort, _, key = after.partition("|")
            start = Record(OCCURRENCE, key, 0, "", group=name, sort=sort)
        found = await self.store.records(
            OCCURRENCE, limit=size + 1, group=name, after=start, newest_first=True
        )
        last = found[size - 1] if len(found) > size else None
        following = None if last is None else f"{last.sort}|{last.key}"
        return OccurrencePage([read_occurrence(record) for record in found[:size]], following)

    # Steps.

    def template(
        self,
        call: Call[Any] | str,
        arguments: Mapping[str, Json] | None = None,
        *,
        queue: str = "default",
    ) -> NewTask:
        if isinstance(call, str) and call not in self.registry and self._is_open(queue):
            call = open_call(call, arguments or {}, NO_OPTIONS)
        elif isinstance(call, str):
            call = self.registry[call].make_json_call(arguments or {}, NO_OPTIONS, strict=True)
        elif arguments is not None:
            raise InvalidOption("arguments", "the call has arguments already")
        for name in ("delay", "run_at", "expires_at", "idempotency_key", "after"):
            if getattr(call.options, name):
                raise InvalidOption(name, "a schedule says itself when and how often it runs")
        new = self.maker.make([call], has_span=False)[0]
        return new._replace(**{name: getattr(_PLAIN, name) for name in _FRESH})

    async def _check_channels(self, series: Series) -> None:
        """`InvalidOption` if results could not be delivered as it says."""
        check, about = self.registry.check_channels, series.about
        if check is not None and about.channels:
            await check(about.owner, about.channels)

    def _is_open(self, queue: str) -> bool:
        return queue in self.settings.open_queues

    def _first(
        self, rule: Schedule, now: datetime, *, may_be_over: bool = False
    ) -> datetime | None:
        """The first run to come; a rule that has none, or too many, is refused."""
        following = rule.next_after(now - timedelta(microseconds=1))
        if following is None and not may_be_over:
            field = "at" if rule.kind is Kind.ONCE else "rule"
            raise InvalidOption(
                field, f"expected a run to come; its last one was before {now:%Y-%m-%d %H:%M} UTC"
            )
        floor, shortest = self.settings.schedule_floor, rule.shortest_gap()
        if shortest is not None and shortest < floor:
            raise InvalidOption(
                "rule",
                f"expected at least {floor:g} s between two runs (`schedule_floor`), got "
                f"{shortest:g} s",
            )
        return following

    async def _not_fired(
        self, series: Series, runs: Sequence[datetime]
    ) -> Sequence[tuple[Fire, int]]:
        """The runs that nobody has fired, each with the version of what is known of it."""
        fired: set[datetime] = set()
        versions: dict[str, int] = {}
        after = Record(OCCURRENCE, "", 0, "", sort=sort_of(runs[0])) if runs else None
        while after is not None and after.sort <= sort_of(runs[-1]):
            page = await self.store.records(OCCURRENCE, group=series.id, after=after, limit=PAGE)
            for record in page:
                versions[record.key] = record.version
                one = read_occurrence(record)
                if one.status is RunStatus.FIRED and one.origin is not Origin.MANUAL:
                    fired.add(one.at)
            after = page[-1] if len(page) == PAGE else None
        return [
            (
                Fire(at, Origin.BACKFILL),
                versions.get(occurrence_key(series.id, series.version, at), 0),
            )
            for at in runs
            if at not in fired
        ]

    async def _fire(
        self, series: Series, fires: Iterable[tuple[Fire, int]], now: datetime
    ) -> Sequence[TaskId]:
        firer = Firer(self.store, self.dispatcher, self.settings, companions=self.companions)
        tasks, said = list[NewTask](), list[Put]()
        for fire, known in fires:
            task = firer.task_of(series, fire)
            one = Occurrence(
                series.id, series.version, fire.at, RunStatus.FIRED, fire.origin, now, task.id
            )
            tasks.append(task)
            said.append(put_occurrence(one, self.settings.retention, version=known))
        if not tasks:
            return []
        new = firer.with_companions(series, tasks)
        added = await self._commit_within(series, [task.id for task in tasks], new, said, now)
        for tell in self.registry.middleware.stored:
            await tell(added)
        self.dispatcher.added(work_for(new))
        return [task.id for task in tasks]

    async def _commit_within(
        self,
        series: Series,
        runs: Sequence[TaskId],
        new: Sequence[NewTask],
        said: Sequence[Put],
        now: datetime,
    ) -> Sequence[Added]:
        """Write these runs; `BudgetExceeded`, and nothing is run, if they are too many for one."""
        window = self.settings.idempotency_window
        while True:
            reserved = None
            if self.budgets is not None:
                reserved = await self.budgets.reserve([Wanted(series, runs)], now)
            _, records, _ = reserved or Reserved()
            for verdict in reserved.verdicts if reserved else ():
                if verdict.over is not None:
                    raise BudgetExceeded(verdict.over.budget, verdict.over.reason)
            try:
                changes = Changes(uuid4().hex, new, [*said, *records], window)
                return await self.store.commit(changes)
            except RecordConflict as conflict:
                if conflict.kind != LEDGER:
                    raise

    async def _change(self, name: str, change: Callable[[Series], Series]) -> Series:
        while True:
            series, record = await self._read(name)
            changed = change(series)
            if changed.about != series.about:
                await self._check_channels(changed)
            try:
                await self.commit(changed, changed.put(record.version))
            except RecordConflict:
                continue
            await self._tell(name, changed.due_at)
            return changed

    async def _read(self, name: str) -> tuple[Series, Record]:
        record = await one_record(self.store, SERIES, name)
        if record is None:
            raise ScheduleNotFound(name)
        return load_series(record), record

    async def _tell(self, name: str, due_at: datetime | None) -> None:
        for hear in self.registry.schedule_changed:
            await hear(name, due_at)

    async def commit(self, series: Series, change: Put | Delete) -> None:
        """Write this change of a series, and what goes with it. `RecordConflict` if it lost."""
        new = with_change(self.companions, series)
        await self._store_all(Changes(uuid4().hex, new, [change]))

    async def _store_all(self, changes: Changes) -> None:
        await self.store.commit(changes)
        if changes.tasks:
            self.dispatcher.added(work_for(changes.tasks))
