"""Writes how attempts ended and what running ones report, each only for who holds the lease.

Successes of tasks without gates concern one document each: two commands for a whole batch, read
and write. Everything else goes the careful way, in a transaction. A settlement that comes too late
costs a look into the history: it may be the repeat of one that was saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from pymongo.errors import OperationFailure

from holdfast.core.attempt import CLASHES, Refusal, Report, Settlement, clashed
from holdfast.core.lifecycle import cancelled_instead
from holdfast.core.task import AttemptEnd, Json, State, TaskId
from holdfast.stores.columns import as_time
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, lane_of
from holdfast.stores.mongo.drafts import LEAN, Draft, write
from holdfast.stores.mongo.faults import is_away
from holdfast.stores.mongo.history import MOST_BYTES, running_attempt
from holdfast.stores.mongo.passing import Effects, Moved, write_and_let_pass
from holdfast.stores.mongo.records import KeepsRecords, record_steps
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.values import holds_lease, reported, settled

LEAN_NOW: Final[Sequence[Document]] = [{"$set": {"now": "$$NOW"}}, {"$project": LEAN}]
_REFUSED: Final = "late_result_refused"
_Saved = set[tuple[str, int, str, str]]
"""(task, attempt, worker, how it ended)."""


class _Clashed(Exception):
    """What a settlement brings along cannot be written: the transaction must not be committed."""

    def __init__(self, settlement: Settlement, clash: Exception) -> None:
        super().__init__(str(clash))
        self.settlement = settlement
        self.refusal = clashed(settlement, clash)


@contextmanager
def _refused(one: Settlement) -> Iterator[None]:
    """For a block that may clash with what is there."""
    try:
        yield
    except CLASHES as clash:
        raise _Clashed(one, clash) from clash


class Settles(KeepsRecords):
    """`TaskStore.save` and `report`."""

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        if not settlements:
            return ()
        async with self._server() as db:
            if await self._save_successes(db, settlements):
                return ()
            clashes: list[Refusal] = []
            while True:
                try:
                    saving = partial(self._save, settlements=settlements)
                    refusals, moved = await atomically(db, saving)
                    break
                except _Clashed as clash:  # nothing was written: the others are saved without it
                    clashes.append(clash.refusal)
                    settlements = [one for one in settlements if one is not clash.settlement]
            await _count(db, len(refusals))
        self._tell(moved)
        return [*refusals, *clashes]

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        async with self._server() as db:
            refusals: list[Refusal] = []
            for portions in [(reports,)] if _fits(reports) else map(_portions, reports):
                for portion in portions:
                    if refused := await atomically(db, partial(self._report, reports=portion)):
                        refusals += refused
                        break
            await _count(db, len(refusals))
            return refusals

    async def _save_successes(self, db: Collections, settlements: Sequence[Settlement]) -> bool:
        """Write these if there is nothing to decide. False: some may not be written."""
        if any(one.state is not State.COMPLETED or one.also for one in settlements):
            return False
        drafts, now = await self._drafts(db, {one.task_id for one in settlements})
        for one in settlements:
            draft = drafts.get(one.task_id)
            if draft is None or draft.is_gated or not holds_lease(draft.task, one):
                return False
            settle(draft, one, now)
        done = await write(db, [*drafts.values()])
        reached("settled")
        return done

    async def _save(
        self, db: Collections, settlements: Sequence[Settlement]
    ) -> tuple[Sequence[Refusal], Moved]:
        drafts, now = await self._drafts(db, {one.task_id for one in settlements})
        late: list[tuple[Settlement, Draft | None]] = []
        bringing: list[Settlement] = []
        orphaned: list[Json] = []
        for one in settlements:
            draft = drafts.get(one.task_id)
            if draft is None or not holds_lease(draft.task, one):
                late.append((one, draft))
                continue
            decided = cancelled_instead(one) if draft.task.cancel_requested else one
            if decided.also is not None:
                bringing.append(one)
            if one.ended is AttemptEnd.WORKER_LOST and draft.session is not None:
                orphaned.append(draft.session)
            settle(draft, one, now)
        await _end_sessions(db, orphaned)
        await _introduce(db, settlements, drafts)
        before = await saved(db, [one for one, _ in late]) if late else set()
        refused = [(one, draft) for one, draft in late if not _is_saved(one, draft, before)]
        for one, draft in refused:
            if draft is not None:
                await _note_refusal(db, one, draft, now)
        effects = await self._counted_up(db, bringing)
        changed = [draft for draft in drafts.values() if draft.is_changed]
        moved = await write_and_let_pass(db, changed, now, effects)
        for one in bringing:  # after the end of their tasks: the keys of those are free by now
            moved |= await self._bring_along(db, one)
        return [_refusal(one, draft) for one, draft in refused], moved

    async def _counted_up(self, db: Collections, bringing: Sequence[Settlement]) -> Effects:
        """What is counted up along with ends, which comes before these count."""
        effects = Effects()
        for one in bringing:
            if one.also is not None and one.also.ups:
                with _refused(one):
                    ups = (await self._decided(db, one.also))[0].ups
                effects.count(ups)
                if one.behind is not None and one.behind in {count.latch for count in ups}:
                    effects[one.behind].closes_anew = True
        return effects

    async def _bring_along(self, db: Collections, one: Settlement) -> Moved:
        assert one.also is not None
        reached("end-written")
        with _refused(one):
            rest = one.also._replace(counts=one.also.downs)
            answers, moved = await self._write_changes(db, rest)
        return {id_: moved[id_] for id_ in moved.keys() - {each.task_id for each in answers}}

    async def _report(self, db: Collections, reports: Sequence[Report]) -> Sequence[Refusal]:
        drafts, now = await self._drafts(db, {one.task_id for one in reports})
        refusals: list[Refusal] = []
        for one in reports:
            draft = drafts.get(one.task_id)
            if draft is None or not holds_lease(draft.task, one):
                refusals.append(_refusal(one, draft))
            else:
                report_on(draft, one, now)
                if one.steps:
                    await record_steps(db, [one])
        await write(db, [draft for draft in drafts.values() if draft.is_changed])
        return refusals

    async def _drafts(self, db: Collections, ids: set[TaskId]) -> tuple[dict[TaskId, Draft], int]:
        """What is to be changed, and now; without a task nobody asks for the time."""
        pipeline = [{"$match": {"_id": {"$in": sorted(ids)}}}, *LEAN_NOW]
        answer = await db.tasks.aggregate(pipeline, batchSize=len(ids) + 1, session=db.session)
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
    again = Report(report.task_id, report.attempt, report.worker_id)  # steps go with the first
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


async def _note_refusal(db: Collections, late: Settlement, draft: Draft, now: int) -> None:
    """Tell the history; beside the document, if that would end the transaction of a handler."""
    if draft.session is None:
        draft.note(now, _REFUSED, attempt=late.attempt, worker_id=late.worker_id)
    else:
        aside = draft.aside(now, _REFUSED, attempt=late.attempt, worker_id=late.worker_id)
        await db.history.insert_one(aside, session=db.session)


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
    found = await db.tasks.find({"_id": {"$in": ids}}, ends, session=db.session).to_list()
    ended = {key for one in found for key in _ends(one["_id"], one)}
    if all(key_of(one) in ended for one in late):
        return ended
    moved = db.history.find({"task": {"$in": ids}}, ends | {"task": 1}, session=db.session)
    chapters = await moved.to_list()
    return ended | {key for one in chapters for key in _ends(one["task"], one)}


def _ends(task_id: str, part: Document) -> _Saved:
    entries = part.get("attempts", ())
    return {(task_id, e["number"], e["worker_id"], e["ended"]) for e in entries}


def key_of(one: Settlement) -> tuple[str, int, str, str]:
    return (one.task_id, one.attempt, one.worker_id, one.ended.value)


def _is_saved(one: Settlement, draft: Draft | None, before: _Saved) -> bool:
    if key_of(one) in before:
        return True
    return draft is not None and draft.has_ended(one.attempt, one.worker_id, one.ended.value)


def _refusal(late: Settlement | Report, draft: Draft | None) -> Refusal:
    holder = draft.task.worker_id if draft and draft.task.state is State.RUNNING else None
    return Refusal(late.task_id, late.attempt, late.worker_id, holder)


async def _count(db: Collections, refused: int) -> None:
    if refused:
        reached("refused")
        await db.state.update_one({"_id": BOARD}, {"$inc": {"refused": refused}})
