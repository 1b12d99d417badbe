"""A notice that a task has ended, owed to the URL that its submitter gave."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holdfast.core.task import TaskId


class Callback(NamedTuple):
    """One notice in the hands of whoever delivers it. The whole of it is the fence.

    `tries` counts the deliveries begun, this one included; `ended_at` is when the task ended.
    """

    task_id: TaskId
    url: str
    tries: int
    ended_at: datetime
