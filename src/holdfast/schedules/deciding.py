"""Which runs of a series are fired now, and what becomes of the others. Pure.

    due runs -> skipped by hand? -> in time, or made up for? -> does the one before still run?

Whatever comes out is written in one commit with the advanced series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import State, TaskId
from holdfast.recurrence import tz_version
from holdfast.schedules.jitter import jittered
from holdfast.schedules.occurrence import Origin, RunStatus
from holdfast.schedules.series import CatchUpMode, Overlap, Series, Status

GRACE: Final = 60.0
"""Seconds after which a run is late, and made up for or missed."""
LONGEST_WINDOW: Final = 12 * 3600.0
LAST_WINDOW: Final = 24 * 3600.0
MOST_TOLD: Final = 100
"""Runs that are told of one by one when they are missed; the others together."""
MOST_DUE: Final = 100_000
MOST_OPEN: Final = 20


class Fire(NamedTuple):
    """A run to submit."""

    at: datetime
    origin: Origin


class Note(NamedTuple):
    """A run that is let go, or several."""

    at: datetime
    status: RunStatus
    reason: str
    number: int = 1
    until: datetime | None = None


class Decision(NamedTuple):
    """`series` is as it must be written, but for the tasks that are fired; `cancels` must stop."""

    series: Series
    fires: Sequence[Fire] = ()
    notes: Sequence[Note] = ()
    cancels: Sequence[TaskId] = ()


def decide(series: Series, now: datetime, ends: Mapping[TaskId, State]) -> Decision:
    """What to do about a series that is due. `ends` are the states of the tasks that it has `open`,
    as far as they are kept.
    """
    if series.status is Status.PAUSED:
        return Decision(resumed(series, now))
    if series.status is not Status.ACTIVE:
        return Decision(series)
    series = _seen(series, ends)
    due, following = _due(series, now)
    after = replace(
        series,
        next_at=following,
        **_last(series, due),
        skips=tuple(each for each in series.skips if each > now),
        status=Status.ACTIVE if following is not None else Status.COMPLETED,
    )
    if not due:
        return Decision(after)
    if series.pause_after_failures and series.failures >= series.pause_after_failures:
        note = f"paused after {series.failures} failed runs one after another"
        paused = replace(after, status=Status.PAUSED, note=note, next_at=None)
        return Decision(paused, notes=_together(due, RunStatus.SKIPPED, note))
    asked = [at for at in due if at in series.skips]
    left = [at for at in due if at not in series.skips]
    fires, notes = _caught_up(series, left, following, now)
    notes = [*_together(asked, RunStatus.SKIPPED, "skipped on request"), *notes]
    return _without_overlaps(series, after, fires, notes)


def retimed(series: Series) -> Series:
    """The series under the tz database of today: its next run may be at another instant. The last
    one is not run again because of that.
    """
    since = max(series.last_at or series.created_at, series.updated_at)
    following = series.rule.next_after(since)
    if following is not None and _wall(series, following) == series.last_wall:
        following = series.rule.next_after(following)
    return replace(series, next_at=following, tz_version=tz_version())


def resumed(series: Series, now: datetime) -> Series:
    """Goes on from now, without what it would have done meanwhile."""
    following = series.rule.next_after(max(now, series.last_at or now))
    return replace(
        series,
        status=Status.ACTIVE if following is not None else Status.COMPLETED,
        note=None,
        paused_until=None,
        next_at=following,
        failures=0,
        updated_at=now,
    )


def _last(series: Series, due: Sequence[datetime]) -> dict[str, Any]:
    if not due:
        return {}
    return {"last_at": due[-1], "last_wall": _wall(series, due[-1])}


def _wall(series: Series, at: datetime) -> str:
    return at.astimezone(ZoneInfo(series.rule.tz)).replace(tzinfo=None).isoformat()


def _seen(series: Series, ends: Mapping[TaskId, State]) -> Series:
    """The series with the ends of its tasks counted. One that is not kept any more has ended."""
    unfinished, failures = list[TaskId](), series.failures
    for task_id in series.open:
        state = ends.get(task_id)
        if state is not None and state not in TERMINAL:
            unfinished.append(task_id)
        elif state is State.COMPLETED:
            failures = 0
        elif state in (State.FAILED, State.DEAD_LETTER):
            failures += 1
    return replace(series, open=tuple(unfinished), failures=failures)


def _due(series: Series, now: datetime) -> tuple[list[datetime], datetime | None]:
    """The runs that have come due, and the one after them."""
    due, at = list[datetime](), series.next_at
    while at is not None and jittered(series.id, series.rule, at, series.jitter) <= now:
        due.append(at)
        if len(due) == MOST_DUE:  # down for very long: what is left counts as missed, too
            at = series.rule.next_after(max(at, now - timedelta(seconds=LAST_WINDOW)))
            del due[: MOST_DUE // 2]
            continue
        at = series.rule.next_after(at)
    return due, at


def _caught_up(
    series: Series, due: Sequence[datetime], following: datetime | None, now: datetime
) -> tuple[list[Fire], list[Note]]:
    mode, most, _ = series.catch_up
    window = timedelta(seconds=_window(series, due, following))
    recent = [at for at in due if now - at <= window or not _is_late(series, at, now)]
    old = due[: len(due) - len(recent)]
    match mode:
        case CatchUpMode.ONE:
            chosen = recent[-1:]
        case CatchUpMode.ALL:
            chosen = recent[-most:]
        case CatchUpMode.SKIP:
            chosen = [at for at in recent if not _is_late(series, at, now)]
    let_go = recent[: len(recent) - len(chosen)]
    reason = "too late" if mode is CatchUpMode.SKIP else "a later run makes up for it"
    notes = [
        *_together(old, RunStatus.MISSED, "too late: nobody was there to fire it"),
        *_together(let_go, RunStatus.MISSED, reason),
    ]
    fires = [
        Fire(at, Origin.CATCH_UP if _is_late(series, at, now) else Origin.SCHEDULE) for at in chosen
    ]
    return fires, notes


def _is_late(series: Series, at: datetime, now: datetime) -> bool:
    meant = jittered(series.id, series.rule, at, series.jitter)
    return (now - meant).total_seconds() > GRACE


def _window(series: Series, due: Sequence[datetime], following: datetime | None) -> float:
    if series.catch_up.window is not None:
        return series.catch_up.window
    if following is None or not due:
        return LAST_WINDOW
    return max(GRACE, min(LONGEST_WINDOW, (following - due[-1]).total_seconds()))


def _without_overlaps(
    series: Series, after: Series, wanted: Sequence[Fire], notes: list[Note]
) -> Decision:
    unfinished, fires = list(series.open), list[Fire]()
    cancels: list[TaskId] = []
    room = {Overlap.SKIP: 1, Overlap.QUEUE_ONE: 2}.get(series.overlap)
    for fire in wanted:
        if room is not None and len(unfinished) + len(fires) >= room:
            told = f"task {unfinished[0]} has not ended" if unfinished else "others were due too"
            notes.append(Note(fire.at, RunStatus.SKIPPED, f"the run before has not ended: {told}"))
        else:
            fires.append(fire)
    if fires and series.overlap is Overlap.CANCEL_RUNNING:
        cancels, fires = unfinished, fires[-1:]
    return Decision(after, fires, notes, cancels)


def _together(runs: Sequence[datetime], status: RunStatus, reason: str) -> list[Note]:
    """Runs that are let go: the last ones each, those before in one."""
    first, last = runs[:-MOST_TOLD], runs[-MOST_TOLD:]
    notes = [Note(first[0], status, reason, len(first), first[-1])] if first else []
    return notes + [Note(at, status, reason) for at in last]
