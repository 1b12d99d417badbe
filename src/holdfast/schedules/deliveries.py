"""The tasks that deliver: for a run of a schedule, and for notices that belong to no run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.core.delivery import delivery_task, notice_task
from holdfast.core.task import NewTask, Priority, Task, TaskId
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.schedules.budgeting import OverBudget
from holdfast.schedules.series import Series


def delivery_tasks(
    series: Series, run: NewTask | Task, *, head_start: int, end: int = 0
) -> list[NewTask]:
    """One task for each channel of the schedule, to be stored in the commit that stores the run:
    they stand behind its end. `head_start` is that of normal priority; `end` counts how often the
    run was started again.
    """
    about = series.about
    title = about.delivery_title or about.title or ""
    return [
        delivery_task(
            run,
            channel,
            title=title,
            schedule=series.id,
            owner=about.owner,
            head_start=head_start,
            end=end,
        )
        for channel in about.channels
    ]


def notice_tasks(
    owner: str,
    channels: Sequence[str],
    title: str,
    content: str,
    key: str,
    *,
    new_id: Callable[[], TaskId],
    head_start: int,
    schedule: str | None = None,
) -> list[NewTask]:
    """One task for each channel, for something that no run says: a budget that is used up, say. Of
    one `key` there is one notice per channel, as long as the idempotency window lasts.
    """
    return [
        notice_task(
            new_id(),
            channel,
            key=key,
            title=title,
            content=content,
            owner=owner,
            schedule=schedule,
            head_start=head_start,
        )
        for channel in channels
    ]


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The companion of schedules whose results go somewhere."""

    maker: TaskMaker

    def with_run(self, series: Series, run: NewTask) -> Sequence[NewTask]:
        """One delivery for each channel."""
        if not series.about.channels:
            return ()
        return delivery_tasks(series, run, head_start=self.maker.head_starts[Priority.NORMAL])

    def with_change(self, series: Series) -> Sequence[NewTask]:
        """Nothing: only results are delivered."""
        return ()

    def told_over_budget(self, series: Series, over: OverBudget) -> Sequence[NewTask]:
        """Tells an owner that a budget has paused a schedule: once for each of its periods."""
        about = series.about
        if about.owner is None or not about.channels:
            return ()
        title = about.title or series.id
        return notice_tasks(
            about.owner,
            about.channels,
            f"Paused: {title}",
            f"{title} is paused until {over.until:%Y-%m-%d %H:%M} UTC: {over.reason}.",
            f"{series.id} {over.budget} {over.until.isoformat()}",
            new_id=self.maker.new_id,
            head_start=self.maker.head_starts[Priority.NORMAL],
            schedule=series.id,
        )
