"""The mirror tasks that are stored with a schedule and with its runs."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.delivery import delivery_id
from holdfast.core.mirror import mirror_task
from holdfast.core.task import NewTask, Priority, TaskId
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.schedules.series import Series


class MirrorCompanion:
    """A `Companion` of schedules. Those without an owner are nobody's to see, and not mirrored."""

    def __init__(self, maker: TaskMaker) -> None:
        self._maker = maker

    def with_change(self, series: Series) -> Sequence[NewTask]:
        """Look at the schedule. One that has lost its owner by an edit is no longer shown."""
        was_never_owned = series.about.owner is None and series.version == 1
        return [] if was_never_owned else [self._task(series)]

    def with_run(self, series: Series, run: NewTask) -> Sequence[NewTask]:
        """Look at the execution while it is under way, when it has ended, and when all that
        deliver its result have.
        """
        if series.about.owner is None:
            return []
        tasks = [
            self._task(series, run.id, follow=True),
            self._task(series, run.id, behind=[run.id]),
        ]
        # Must be stored with the deliveries or after them: latches of unknown tasks are open.
        if deliveries := [delivery_id(run.id, channel) for channel in series.about.channels]:
            tasks.append(self._task(series, run.id, behind=deliveries))
        return tasks

    def _task(
        self,
        series: Series,
        execution: TaskId | None = None,
        *,
        behind: Sequence[TaskId] = (),
        follow: bool = False,
    ) -> NewTask:
        return mirror_task(
            self._maker.new_id(),
            series.id,
            execution,
            owner=series.about.owner,
            head_start=self._maker.head_starts[Priority.NORMAL],
            behind=behind,
            follow=follow,
        )
