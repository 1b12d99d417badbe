"""How schedules, their rules and their runs look to people. Times are those of the schedule."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from holdfast.cli import words
from holdfast.cli.screen import Screen
from holdfast.core.schedule_state import RunEnd, ScheduleRun, ScheduleState

if TYPE_CHECKING:
    from holdfast.recurrence import PreviewRow, Schedule


def local(at: datetime | None, tz: str) -> str:
    """`2026-03-02 09:00 CET`, with seconds if there are any."""
    if at is None:
        return "-"
    there = at.astimezone(ZoneInfo(tz))
    return f"{there:%Y-%m-%d %H:%M}{there.strftime(':%S') if there.second else ''} {there:%Z}"


def show_schedules(
    screen: Screen, schedules: Sequence[ScheduleState], last: Sequence[ScheduleRun | None]
) -> None:
    """Schedules by name, each with its last run if there was one."""
    if not schedules:
        screen.line("There is no schedule. Make one: holdfast schedule add APP TASK RULE")
        return
    columns = ("name", "status", "next run", "last run", "its end", "rule")
    rows = [
        (
            one.id,
            one.status,
            local(one.next_run_at, one.tz),
            "-" if run is None else local(run.scheduled_for, one.tz),
            "-" if run is None else run.status.value,
            one.words,
        )
        for one, run in zip(schedules, last, strict=True)
    ]
    screen.table(columns, rows, spare=("last run", "its end"))


def show_schedule(screen: Screen, one: ScheduleState, runs: Sequence[ScheduleRun]) -> None:
    """Everything about one, and its last runs."""
    next_run = local(one.next_run_at, one.tz)
    if one.next_run_at is not None:
        next_run += f" ({words.ago(one.next_run_at)})"
    is_late = one.due_at is not None and one.next_run_at is not None and one.jitter > 0
    screen.fields(
        [
            ("name", one.id),
            ("title", one.title),
            ("status", one.status),
            ("note", one.note),
            ("paused until", local(one.paused_until, one.tz) if one.paused_until else None),
            ("rule", one.words),
            ("next run", next_run),
            ("starts", local(one.due_at, one.tz) if is_late else None),
            ("skipped", ", ".join(local(each, one.tz) for each in one.skips)),
            ("last run", local(one.last_run_at, one.tz)),
            ("runs", f"{one.runs:,} fired, {one.failures:,} failed one after another"),
            ("unfinished", ", ".join(one.open_tasks)),
            ("task", one.task_name),
            ("arguments", json.dumps(one.parameters, ensure_ascii=False)),
            ("queue", one.queue),
            ("priority", one.priority.value),
            ("tags", ", ".join(one.tags)),
            ("overlap", one.overlap),
            ("catch up", _catch_up(one)),
            ("jitter", f"up to {words.duration(one.jitter)}" if one.jitter else None),
            ("pauses after", _failures(one.pause_after_failures)),
            ("declared", _declared(one)),
            *_about(one),
            ("created", words.instant(one.created_at)),
            ("updated", words.instant(one.updated_at)),
        ]
    )
    if runs:
        screen.line()
        screen.line("Last runs:", "bold")
        show_runs(screen, runs, one.tz)


def show_runs(screen: Screen, runs: Sequence[ScheduleRun], tz: str) -> None:
    """What became of runs, newest first."""
    if not runs:
        screen.line("It has not run yet, or nothing of that is kept any more.")
        return
    columns = ("scheduled for", "status", "origin", "late by", "task", "what")
    screen.table(columns, [_run_row(run, tz) for run in runs], spare=("origin", "late by"))


def show_preview(
    screen: Screen, rule: Schedule, rows: Sequence[PreviewRow], *, is_complete: bool
) -> None:
    """A rule in words, and its next runs."""
    screen.line(f"{rule.words[:1].upper()}{rule.words[1:]}.")
    if not rows:
        screen.line("It does not run any more.")
        return
    zone = rows[0].local.tzinfo
    screen.line()
    cells = [
        (
            f"{row.local:%a %Y-%m-%d %H:%M:%S}",
            row.abbreviation,
            f"{row.utc:%Y-%m-%d %H:%M:%SZ}",
            "; ".join(_oddities(row)),
        )
        for row in rows
    ]
    screen.table((f"in {zone}", "zone", "UTC", "note"), cells)
    if is_complete:
        screen.line("There are no more.")


def _oddities(row: PreviewRow) -> Iterator[str]:
    for flag in row.flags:
        match flag:
            case "moved_by_gap" if row.meant is not None:
                yield f"moved: {row.meant:%H:%M} does not exist that day"
            case "first_of_two":
                yield "the first of two: the clock shows that time twice"
            case "second_of_two":
                yield "the second of two: the clock shows that time twice"
            case "skipped_months" | "skipped_years":
                yield f"before it {', '.join(row.skipped)} had no such day"
            case _:
                yield flag.replace("_", " ")


def _run_row(run: ScheduleRun, tz: str) -> Sequence[str]:
    at = local(run.scheduled_for, tz)
    if run.number > 1:
        at += f" and {run.number - 1:,} more until {local(run.until, tz)}"
    late = run.lateness if run.origin in {"schedule", "catch_up"} else None
    return (
        at,
        run.status.value,
        run.origin,
        "-" if late is None else words.duration(max(0.0, late)),
        run.task_id or "-",
        _what(run),
    )


def _what(run: ScheduleRun) -> str:
    if run.reason is not None:
        return run.reason
    if run.error is not None and run.status is not RunEnd.SUCCESS:
        first = run.error.message.splitlines()[0] if run.error.message else ""
        return f"{run.error.type}: {first}"
    if run.status is RunEnd.SUCCESS and run.started_at and run.finished_at:
        return f"took {words.duration((run.finished_at - run.started_at).total_seconds())}"
    if run.task_state is not None and run.status is RunEnd.RUNNING:
        return f"its task is {run.task_state}"
    return ""


def _catch_up(one: ScheduleState) -> str:
    text = (
        f"{one.catch_up}, {one.catch_up_most:,} at most" if one.catch_up == "all" else one.catch_up
    )
    if one.catch_up_window is not None:
        text += f", none older than {words.duration(one.catch_up_window)}"
    return text


def _failures(number: int | None) -> str | None:
    return None if number is None else f"{number:,} failed runs one after another"


def _declared(one: ScheduleState) -> str | None:
    if not one.is_declared:
        return None
    return "in code, and edited since" if one.is_edited else "in code"


def _about(one: ScheduleState) -> list[tuple[str, object]]:
    return [
        ("owner", one.owner),
        ("description", one.description),
        ("purpose", one.purpose),
        ("category", one.category),
        ("delivered as", one.delivery_title),
        ("channels", ", ".join(one.channels)),
        ("estimated units", one.estimated_units),
        ("chat", one.chat_id),
        ("message", one.message_id),
    ]


def sentence(one: ScheduleState) -> str:
    """`daily is active; next run 2026-03-02 09:00 CET (in 20 h).`"""
    if one.next_run_at is None:
        until = f" until {local(one.paused_until, one.tz)}" if one.paused_until else ""
        return f"{one.id} is {one.status}{until}."
    ago = words.ago(one.next_run_at, datetime.now(UTC))
    return f"{one.id} is {one.status}; next run {local(one.next_run_at, one.tz)} ({ago})."
