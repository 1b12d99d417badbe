"""Mirror tasks: each brings one document of the mirror (`holdfast.mirror`) up to date.

They name what to look at and nothing more, and are stored with the change that they tell of. Of one
schedule one runs at a time (a lock), and of all no more than `AT_A_TIME`: however slow the mirror
is, nobody waits for it but they.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from holdfast.core.fleet import MIRROR
from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import NewTask, TaskId

NAME: Final = "holdfast.mirror"
QUEUE: Final = "mirror"
AT_A_TIME: Final = 32
RETRIES: Final = 300
"""With a backoff that doubles from five seconds to ten minutes, that takes about a day."""
TIMEOUT: Final = 30.0


def mirror_task(
    task_id: TaskId,
    schedule: str,
    execution: TaskId | None = None,
    *,
    owner: str | None,
    head_start: int,
    behind: Sequence[TaskId] = (),
    follow: bool = False,
) -> NewTask:
    """The task that looks at a schedule, or at one of its executions, behind the ends of these
    tasks. With `follow` it looks again and again until the execution has ended.
    """
    about = {"schedule": schedule, "execution": execution, "follow": follow}
    return NewTask(
        id=task_id,
        name=NAME,
        payload=json.dumps(about).encode(),
        queue=QUEUE,
        head_start=head_start,
        max_retries=RETRIES,
        timeout=TIMEOUT,
        requires=frozenset({MIRROR}),
        owner=owner,
        gates=(
            *(Gate(GateKind.LATCH, each) for each in behind),
            Gate(GateKind.LOCK, f"mirror {schedule}"),
            Gate(GateKind.LIMIT, "mirror", AT_A_TIME),
        ),
    )
