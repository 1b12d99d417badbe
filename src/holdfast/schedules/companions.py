"""What goes with schedules: tasks that are written in the same commit as a series, or as a run of
it, so that they exist if and only if it does. Deliveries and mirrors are such tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from holdfast.core.task import NewTask
from holdfast.schedules.series import Series


class Companion(Protocol):
    """One kind of such tasks. Pure: whoever writes a series or fires it asks the same."""

    def with_run(self, series: Series, run: NewTask) -> Sequence[NewTask]:
        """The tasks that go with a run, usually behind its latch."""
        ...

    def with_change(self, series: Series) -> Sequence[NewTask]:
        """The tasks that go with a series that is made, changed, advanced or deleted."""
        ...


Companions = Sequence[Companion]


def with_runs(companions: Companions, series: Series, runs: Iterable[NewTask]) -> list[NewTask]:
    """What goes with these runs of a series."""
    return [task for run in runs for each in companions for task in each.with_run(series, run)]


def with_change(companions: Companions, series: Series) -> list[NewTask]:
    """What goes with a change of a series."""
    return [task for each in companions for task in each.with_change(series)]
