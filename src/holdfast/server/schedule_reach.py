"""What a token reaches of the schedules; see `reach`.

For a bound token, schedules of other owners, queues or tasks are not there. What it makes is its
owner's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from holdfast.client import Client
from holdfast.core.schedule_answers import SCHEDULE, SCHEDULE_RUN, BriefSchedule
from holdfast.core.schedule_state import ScheduleRun
from holdfast.core.task import Json, Task, TaskId
from holdfast.core.token import Scope, Token
from holdfast.definitions.call import Call
from holdfast.errors import ScheduleNotFound
from holdfast.flow.results import read_tasks
from holdfast.recurrence import Schedule
from holdfast.schedules.book import SchedulePage
from holdfast.schedules.occurrence import Occurrence
from holdfast.schedules.series import Series
from holdfast.schedules.showing import schedule_run, schedule_state
from holdfast.server.problems import Refused
from holdfast.server.reach import Reach

PAGE: Final = 1000
PAGE_BYTES: Final = 8 * 1024 * 1024
STEP: Final = 25
"""Runs that are read at once, before it is known how large their results are."""


class ScheduleReach:
    """The verbs about schedules of one token."""

    def __init__(self, client: Client, token: Token, reach: Reach) -> None:
        self._client = client
        self._book = client.schedules
        self._token = token
        self._bounds = token.bounds
        self._reach = reach

    async def get(self, name: str) -> Series:
        series = await self._book.get(name)
        if series is None or not self._covers(series):
            raise ScheduleNotFound(name)
        return series

    async def list(self, *, owner: str | None, after: str, limit: int) -> SchedulePage:
        """A page of those that are there for this token."""
        mine = self._bounds.owner
        if mine is not None and owner not in (None, mine):
            return SchedulePage((), None)
        found: list[Series] = []
        while True:
            page = await self._book.list(owner=mine or owner, after=after, limit=limit)
            found += [series for series in page.schedules if self._covers(series)]
            if page.next is None or len(found) >= limit:
                break
            after = page.next
        more = len(found) > limit or page.next is not None
        shown = found[:limit]
        return SchedulePage(shown, shown[-1].id if more and shown else None)

    async def every(self, owner: str | None) -> AsyncIterator[Series]:
        """All of them, one after another."""
        after = ""
        while True:
            page = await self.list(owner=owner, after=after, limit=PAGE)
            for series in page.schedules:
                yield series
            if page.next is None:
                return
            after = page.next

    async def create(
        self, call: Call[Any], rule: Schedule, name: str | None, words: Mapping[str, Any]
    ) -> Series:
        return await self._book.create(
            self.bounded(call), rule, name=name, **{**words, **self.owned(words)}
        )

    async def update(
        self, name: str, call: Call[Any] | None, rule: Schedule | None, words: Mapping[str, Any]
    ) -> Series:
        await self.get(name)
        given = {word: each for word, each in words.items() if word != "parameters"}
        if "owner" in given:
            given |= self.owned(given)
        return await self._book.update(
            name,
            call=None if call is None else self.bounded(call),
            rule=rule,
            arguments=words.get("parameters"),
            **given,
        )

    async def pause(self, name: str, *, until: datetime | None, note: str | None) -> Series:
        await self.get(name)
        return await self._book.pause(name, until=until, note=note)

    async def resume(self, name: str) -> Series:
        await self.get(name)
        return await self._book.resume(name)

    async def skip(self, name: str) -> Series:
        await self.get(name)
        return await self._book.skip(name)

    async def trigger(self, name: str) -> TaskId:
        await self.get(name)
        return await self._book.trigger(name)

    async def backfill(
        self, name: str, begin: datetime, end: datetime, most: int
    ) -> Sequence[TaskId]:
        series, now = await self.get(name), await self._client.now()
        if begin < end:
            # Before they are fired, so that a token which may not so much fires none.
            runs = series.rule.between(begin, min(end, now), limit=most)
            self._reach.count(max(len(runs), 1))
        return await self._book.backfill(name, begin, end, most=most)

    async def delete(self, name: str) -> None:
        await self.get(name)
        if not await self._book.delete(name):
            raise ScheduleNotFound(name)

    async def runs(self, name: str, *, after: str, limit: int) -> Json:
        """A page of its runs, as JSON; it ends early rather than grow large."""
        series = await self.get(name)
        runs: list[Json] = []
        left, following = PAGE_BYTES, None
        while len(runs) < limit and left > 0:
            page = await self._book.runs(name, after=after, limit=min(STEP, limit - len(runs)))
            tasks = await self._tasks(page.runs)
            for one in page.runs:
                task = tasks.get(one.task_id) if one.task_id is not None else None
                left -= 0 if task is None else len(task.result or b"")
                runs.append(SCHEDULE_RUN.write(schedule_run(series, one, task)))
            following = page.next
            if following is None:
                break
            after = following
        return {"runs": runs, "next": following}

    async def last_runs(
        self, many: Sequence[Series], number: int
    ) -> Mapping[str, Sequence[ScheduleRun]]:
        """The last runs of each of these, newest first. They are taken to be within its reach."""
        pages = {each.id: await self._book.runs(each.id, limit=number) for each in many}
        tasks = await self._tasks([one for page in pages.values() for one in page.runs])
        return {
            each.id: [
                schedule_run(each, one, tasks.get(one.task_id) if one.task_id else None)
                for one in pages[each.id].runs
            ]
            for each in many
        }

    async def run_page(
        self, series: Series, *, after: str, limit: int
    ) -> tuple[Sequence[ScheduleRun], str | None]:
        """A page of the runs of one of those that it reaches, and what brings those before."""
        page = await self._book.runs(series.id, after=after, limit=limit)
        tasks = await self._tasks(page.runs)
        return [
            schedule_run(series, one, tasks.get(one.task_id) if one.task_id else None)
            for one in page.runs
        ], page.next

    async def _tasks(self, runs: Sequence[Occurrence]) -> dict[TaskId, Task]:
        ids = [one.task_id for one in runs if one.task_id is not None]
        found = await read_tasks(self._client.store, ids) if ids else {}
        return {task_id: task for task_id, task in found.items() if self._bounds.cover(task)}

    def shown(self, series: Series) -> Json:
        """A schedule for whoever has this token: all of it to those who may read."""
        if not self._token.may(Scope.READ):
            return self.brief(series)
        return SCHEDULE.write(schedule_state(series, self._client.registry))

    def brief(self, series: Series) -> Json:
        """The little that whoever made a schedule may know of it."""
        state = schedule_state(series, self._client.registry)
        return SCHEDULE.pick(state, *BriefSchedule.__annotations__)

    def bounded(self, call: Call[Any]) -> Call[Any]:
        """The call as this token may submit it; `Refused` (403) if it may not."""
        made = self._reach.bounded(call)
        assert isinstance(made, Call)
        return made

    def owned(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """Whose it is, if the token says that."""
        mine = self._bounds.owner
        if mine is None:
            return {}
        if words.get("owner", mine) != mine:
            raise Refused(
                403,
                "out_of_bounds",
                "this token is bound: it makes schedules for its own owner only",
                field="owner",
            )
        return {"owner": mine}

    def _covers(self, series: Series) -> bool:
        bounds, template = self._bounds, series.template
        return (
            (bounds.owner is None or series.about.owner == bounds.owner)
            and (bounds.queues is None or template.queue in bounds.queues)
            and (bounds.names is None or template.name in bounds.names)
        )
