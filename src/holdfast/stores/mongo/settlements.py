"""Writes how attempts ended and what running ones report, each only for who holds the lease.

Two commands for a whole batch: read, write. A settlement that comes too late costs a look into the
history: it may be the repeat of one that was saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pymongo.errors import OperationFailure

from holdfast.core.attempt import Refusal, Report, Settlement
from holdfast.core.lifecycle import cancelled_instead
from holdfast.core.task import AttemptEnd, Json, State, TaskId
from holdfast.stores.columns import as_time
from holdfast.stores.mongo.chronicle import MOST_BYTES, running_attempt
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place, lane_of
from holdfast.stores.mongo.drafts import LEAN, Draft, write
from holdfast.stores.mongo.faults import is_away
from holdfast.stores.mongo.locks import pass_on
from holdfast.stores.mongo.points import reached
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.values import holds_lease, reported, settled

LEAN_NOW: Final[Sequence[Document]] = [{"$set": {"now": "$$NOW"}}, {"$project": LEAN}]
_REFUSED: Final = "late_result_refused"
_Saved = set[tuple[str, int, str, str]]
"""(task, attempt, worker, how it ended)."""


class Settles(Connected):
    """`TaskStore.save` and `report`."""

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        if not settlements:
            return ()
        async with self._server() as db:
            refusals: Sequence[Refusal] | None = None
            noted: set[int] = set()
            while refusals is None:
                refusals = await self._save(db, settlements, noted)
            return refusals

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        async with self._server() as db:
            refusals: list[Refusal] = []
            for portions in [(reports,)] if _fits(reports) else map(_portions, reports):
                for portion in portions:
                    if refused := await self._report_all(db, portion):
                        refusals += refused
                        break
            await _count(db, len(refusals))
            return refusals

    async def _save(
        self, db: Collections, settlements: Sequence[Settlement], noted: set[int]
    ) -> Sequence[Refusal] | None:
        """None: another writer was faster somewhere. All is tried again, and what was written by
        then is found to be saved, or in `noted`: refused, and the history has it.
        """
        drafts, now = await self._drafts(db, {one.task_id for one in settlements})
        late: dict[int, Refusal] = {}
        orphaned: list[Json] = []
        for number, one in enumerate(settlements):
            draft = drafts.get(one.task_id)
            if draft is None or not holds_lease(draft.task, one):
                late[number] = _refusal(one, draft)
            else:
                if one.ended is AttemptEnd.WORKER_LOST and draft.session is not None:
                    orphaned.append(draft.session)
                settle(draft, one, now)
        await _end_sessions(db, orphaned)
        await _introduce(db, settlements, drafts)
        before = await saved(db, [settlements[number] for number in late]) if late else set()
        refused = [n for n in late if not _is_saved(settlements[n], drafts, before)]
        for number in refused:
            draft = drafts.get(settlements[number].task_id)
            if draft and number not in noted:
                _, attempt, worker_id, _ = late[number]
                if draft.session is None:
                    draft.note(now, _REFUSED, attempt=attempt, worker_id=worker_id)
                else:
                    aside = draft.aside(now, _REFUSED, attempt=attempt, worker_id=worker_id)
                    await db.history.insert_one(aside)
                    noted.add(number)
        written = await write(db, [draft for draft in drafts.values() if draft.is_changed])
        contested = {draft.contested for draft in written.done if draft.contested is not None}
        if contested:
            reached("settled")
            await pass_on(db, contested)
        if written.lost:
            done = {draft.task.id for draft in written.done}
            noted |= {number for number in refused if late[number].task_id in done}
            return None
        await _count(db, len(refused))
        return [late[number] for number in refused]

    async def _report_all(self, db: Collections, reports: Sequence[Report]) -> Sequence[Refusal]:
        refusals: list[Refusal] = []
        while reports:
            reports = await self._report(db, reports, refusals)
        return refusals

    async def _report(
        self, db: Collections, reports: Sequence[Report], refusals: list[Refusal]
    ) -> Sequence[Report]:
        """Returns those to be tried again."""
        drafts, now = await self._drafts(db, {one.task_id for one in reports})
        taken = []
        for one in reports:
            draft = drafts.get(one.task_id)
            if draft is None or not holds_lease(draft.task, one):
                refusals.append(_refusal(one, draft))
                continue
            taken.append(one)
            report_on(draft, one, now)
        written = await write(db, [draft for draft in drafts.values() if draft.is_changed])
        lost = {draft.task.id for draft in written.lost}
        return [one for one in taken if one.task_id in lost]

    async def _drafts(self, db: Collections, ids: set[TaskId]) -> tuple[dict[TaskId, Draft], int]:
        """What is to be changed, and now; without a task nobody asks for the time."""
        wanted = {"_id": {"$in": sorted(ids)}, "place": {"$ne": Place.STAGED.value}}
        pipeline = [{"$match": wanted}, *LEAN_NOW]
        answer = await db.tasks.aggregate(pipeline, batchSize=len(ids) + 1)
        found = await answer.to_list()
        now = self._us(found[0]["now"]) if found else 0
        return {TaskId(one["_id"]): Draft(one) for one in found}, now


def _fits(reports: Sequence[Report]) -> bool:
    """Whether the lines of each task go into its document at once."""
    return all(sum(map(len, one.logs)) <= MOST_BYTES for one in reports)


def _portions(report: Report) -> Iterator[Sequence[Report]]:
    return ([part] for part in portions_of(report))


def portions_of(report: Report) -> Iterator[Report]:
    """A report of many lines, as reports of fewer."""
    first = report._replace(logs=())
    again = Report(report.task_id, report.attempt, report.worker_id)
    lines: list[str] = []
    for line in report.logs:
        if lines and sum(map(len, lines)) + len(line) > MOST_BYTES:
            yield first._replace(logs=tuple(lines))
            first, lines = again, []
        lines.append(line)
    yield first._replace(logs=tuple(lines))


def report_on(draft: Draft, report: Report, now: int) -> None:
    """Add what an attempt says."""
    draft.change(reported(draft.task, report))
    for line in report.logs:
        draft.note(now, "log", attempt=report.attempt, worker_id=report.worker_id, detail=line)


def settle(draft: Draft, settlement: Settlement, now: int) -> None:
    task = draft.task
    if task.cancel_requested:
        settlement = cancelled_instead(settlement)
    running = running_attempt(task)
    assert running is not None
    draft.end_attempt(
        replace(
            running,
            ended_at=as_time(now),
            ended=settlement.ended,
            charged=settlement.charged > task.charged,
            error=settlement.error,
        )
    )
    if draft.session is not None:
        draft.set(session=None)
    draft.move(settled(task, settlement, now), now)


async def _introduce(
    db: Collections, settlements: Sequence[Settlement], drafts: dict[TaskId, Draft]
) -> None:
    """See to it that claimers know of the lanes that tasks are sent to before they are there."""
    moved = [drafts[one.task_id].task for one in settlements if one.needs and one.task_id in drafts]
    if moved:
        lanes = sorted({lane_of(task.queue, task.requires) for task in moved})
        await db.state.update_one({"_id": BOARD}, {"$addToSet": {"lanes": {"$each": lanes}}})


async def _end_sessions(db: Collections, sessions: Sequence[Json]) -> None:
    """Have the server abort what a lost worker left open: it may hold the very task. Where one may
    not, its writes are waited for until the server gives them up by itself.
    """
    if sessions:
        try:
            await db.client.admin.command("killSessions", sessions)
        except OperationFailure as error:
            if is_away(error):
                raise


async def saved(db: Collections, late: Sequence[Settlement]) -> _Saved:
    """The ended attempts of these tasks: embedded ones, and in chapters if not found there."""
    ids = sorted({one.task_id for one in late})
    ends = {"attempts.number": 1, "attempts.worker_id": 1, "attempts.ended": 1}
    found = await db.tasks.find({"_id": {"$in": ids}}, ends).to_list()
    ended = {key for one in found for key in _ends(one["_id"], one)}
    if all(key_of(one) in ended for one in late):
        return ended
    chapters = await db.history.find({"task": {"$in": ids}}, ends | {"task": 1}).to_list()
    return ended | {key for one in chapters for key in _ends(one["task"], one)}


def _ends(task_id: str, part: Document) -> _Saved:
    entries = part.get("attempts", ())
    return {(task_id, e["number"], e["worker_id"], e["ended"]) for e in entries}


def key_of(one: Settlement) -> tuple[str, int, str, str]:
    return (one.task_id, one.attempt, one.worker_id, one.ended.value)


def _is_saved(one: Settlement, drafts: dict[TaskId, Draft], before: _Saved) -> bool:
    if key_of(one) in before:
        return True
    draft = drafts.get(one.task_id)
    return draft is not None and draft.has_ended(one.attempt, one.worker_id, one.ended.value)


def _refusal(late: Settlement | Report, draft: Draft | None) -> Refusal:
    holder = draft.task.worker_id if draft and draft.task.state is State.RUNNING else None
    return Refusal(late.task_id, late.attempt, late.worker_id, holder)


async def _count(db: Collections, refused: int) -> None:
    if refused:
        reached("refused")
        await db.state.update_one({"_id": BOARD}, {"$inc": {"refused": refused}})
