"""Which runs of a series are fired now, and what becomes of the others. Pure.

    due runs -> skipped by hand? -> in time, or made up for? -> does the one before still run?

Whatever comes out is written in one commit with the advanced series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import State, TaskId
from holdfast.recurrence import tz_version
from holdfast.schedules.jitter import jittered_until
from holdfast.schedules.occurrence import Origin, RunStatus
from holdfast.schedules.retiming import retimed
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


class _Due(NamedTuple):
    """Runs that have come due, and how many of them are not late: the last ones."""

    runs: list[datetime]
    on_time: int
    following: datetime | None
    uncounted: Note | None = None


def decide(series: Series, now: datetime, ends: Mapping[TaskId, State]) -> Decision:
    """What to do about a series that is due. `ends` are the states of the tasks that it has `open`,
    as far as they are kept.
    """
    if series.status is Status.PAUSED and series.paused_until is not None:
        series = resumed(series, min(now, series.paused_until))
    if series.status is not Status.ACTIVE:
        return Decision(series)
    if series.tz_version != tz_version():
        series = retimed(series)
    series = _seen(series, ends)
    due = _due(series, now)
    after = series.going_on(due.following)
    if not due.runs:
        return Decision(after)
    kept = tuple(each for each in series.skips if each > now)
    after = replace(after, last_at=due.runs[-1], skips=kept)
    limit = series.pause_after_failures
    if limit is not None and series.failures >= limit:
        note = f"paused after {series.failures} failed runs one after another"
        paused = replace(after, status=Status.PAUSED, note=note)
        return Decision(paused, notes=_together(due.runs, RunStatus.SKIPPED, note))
    asked = [at for at in due.runs if at in series.skips]
    fires, notes = _caught_up(series, due, now)
    notes = [*_together(asked, RunStatus.SKIPPED, "skipped on request"), *notes]
    if due.uncounted is not None:
        notes.insert(0, due.uncounted)
    return _without_overlaps(series, after, fires, notes)


def over_budget(decision: Decision, allowed: int, reason: str, until: datetime) -> Decision:
    """The decision when only the first runs may be fired: the others are skipped, and the series is
    paused until then. What runs is not cancelled for a run that does not come.
    """
    fires, refused = decision.fires[:allowed], decision.fires[allowed:]
    told = f"paused: {reason}"
    after = replace(decision.series, note=told)
    if after.status is Status.ACTIVE:
        after = replace(after, status=Status.PAUSED, paused_until=until)
    skipped = _together([fire.at for fire in refused], RunStatus.SKIPPED, reason)
    return Decision(after, fires, [*decision.notes, *skipped], decision.cancels if fires else ())


def resumed(series: Series, now: datetime) -> Series:
    """Goes on from now, without what it would have done meanwhile."""
    following = series.rule.next_after(max(now, series.last_at or now))
    going_on = series.going_on(following)
    return replace(going_on, note=None, paused_until=None, failures=0, updated_at=now)


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


def _due(series: Series, now: datetime) -> _Due:
    """The runs that have come due, and the one after them. Of very many only the last ones: what
    was before them is told of without a number.
    """
    runs, at, on_time = list[datetime](), series.next_at, 0
    left_out: Note | None = None
    while at is not None:
        following = series.rule.next_after(at)
        starts = at
        if series.jitter > 0.0:
            starts = jittered_until(series.id, at, following, series.jitter)
        if starts > now:
            break
        runs.append(at)
        on_time += (now - starts).total_seconds() <= GRACE
        if len(runs) == MOST_DUE and left_out is None:
            recent = now - timedelta(seconds=LAST_WINDOW)
            if at < recent:
                told = "too late: these runs, and those after them that are not told of"
                left_out = Note(runs[0], RunStatus.MISSED, told, len(runs), recent)
                runs, following = [], series.rule.next_after(recent)
        at = following
    return _Due(runs, on_time, at, left_out)


def _caught_up(series: Series, due: _Due, now: datetime) -> tuple[list[Fire], list[Note]]:
    mode, most, _ = series.catch_up
    window = now - timedelta(seconds=_window(series, due))
    edge = len(due.runs) - due.on_time
    late = [at for at in due.runs[:edge] if at not in series.skips]
    on_time = [at for at in due.runs[edge:] if at not in series.skips]
    recent = [at for at in late if at >= window]
    match mode:
        case CatchUpMode.ONE:
            chosen = [] if on_time else recent[-1:]
            reason = "a later run makes up for it"
        case CatchUpMode.ALL:
            chosen = recent[-most:]
            reason = f"{most:,} runs are made up for at most"
        case CatchUpMode.SKIP:
            chosen = []
            reason = "too late, and runs are not made up for"
    let_go = recent[: len(recent) - len(chosen)]
    old = late[: len(late) - len(recent)]
    notes = [
        *_together(old, RunStatus.MISSED, "too late: nobody was there to fire it"),
        *_together(let_go, RunStatus.MISSED, reason),
    ]
    fires = [
        *(Fire(at, Origin.CATCH_UP) for at in chosen),
        *(Fire(at, Origin.SCHEDULE) for at in on_time),
    ]
    return fires, notes


def _window(series: Series, due: _Due) -> float:
    if series.catch_up.window is not None:
        return series.catch_up.window
    if due.following is None:
        return LAST_WINDOW
    return max(GRACE, min(LONGEST_WINDOW, (due.following - due.runs[-1]).total_seconds()))


def _without_overlaps(
    series: Series, after: Series, wanted: Sequence[Fire], notes: list[Note]
) -> Decision:
    unfinished, fires = list(series.open), list(wanted)
    cancels: list[TaskId] = []
    match series.overlap:
        case Overlap.SKIP | Overlap.QUEUE_ONE:
            room = 1 if series.overlap is Overlap.SKIP else 2
            room = max(0, room - len(unfinished))
            told = "the run before it was due only just now, too"
            if unfinished:
                told = f"the run before has not ended: task {unfinished[-1]}"
            notes += [Note(fire.at, RunStatus.SKIPPED, told) for fire in fires[room:]]
            fires = fires[:room]
        case Overlap.CANCEL_RUNNING if fires:
            told = "a later run took its place"
            notes += [Note(fire.at, RunStatus.SKIPPED, told) for fire in fires[:-1]]
            cancels, fires = unfinished, fires[-1:]
        case Overlap.CANCEL_RUNNING | Overlap.QUEUE_ALL | Overlap.ALLOW:
            pass
    return Decision(after, fires, notes, cancels)


def _together(runs: Sequence[datetime], status: RunStatus, reason: str) -> list[Note]:
    """Runs that are let go: the last ones each, those before in one."""
    first, last = runs[:-MOST_TOLD], runs[-MOST_TOLD:]
    notes = [Note(first[0], status, reason, len(first), first[-1])] if first else []
    return notes + [Note(at, status, reason) for at in last]
