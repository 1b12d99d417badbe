"""The last runs of a schedule as a row of cells, the newest last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.core.schedule_state import ScheduleRun
from holdfast.core.task import TaskId
from holdfast.dashboard.words import duration, utc

MOST: Final = 10


class Cell(NamedTuple):
    """What became of a run, for the eye and in words."""

    kind: str
    says: str
    task_id: TaskId | None


def cells(runs: Sequence[ScheduleRun]) -> list[Cell]:
    """Runs come newest first."""
    return [Cell(run.status.value, _says(run), run.task_id) for run in reversed(runs)]


def took(run: ScheduleRun) -> float | None:
    """Seconds that it ran."""
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()


def _says(run: ScheduleRun) -> str:
    many = f"{run.number} runs from " if run.number > 1 else ""
    length = took(run)
    more = "" if length is None else f", took {duration(length)}"
    why = f", {run.reason}" if run.reason else ""
    return f"{run.status.value}: {many}{utc(run.scheduled_for)}{more}{why}"
