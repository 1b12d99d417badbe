"""What a series submits, as JSON: a new task without what differs from run to run.

It was checked when the series was made. So whoever fires it need not know the task's definition.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.gate import gates_from, gates_text
from holdfast.core.task import Json, NewTask, Priority, TaskId

NO_ID: Final = TaskId("")
_PLAIN: Final = (
    "name", "queue", "head_start", "delay", "expires_in", "max_retries", "timeout", "retry",
    "unique_key", "lock", "owner", "callback",
)  # fmt: skip


def dump_template(new: NewTask) -> Json:
    said = {name: getattr(new, name) for name in _PLAIN}
    return said | {
        "payload": new.payload.decode(),
        "priority": new.priority.value,
        "requires": sorted(new.requires),
        "tags": list(new.tags),
        "gates": gates_text(new.gates),
    }


def load_template(said: Json) -> NewTask:
    """What `dump_template` wrote."""
    return NewTask(
        id=NO_ID,
        payload=said["payload"].encode(),
        priority=Priority(said["priority"]),
        requires=frozenset(said["requires"]),
        tags=tuple(said["tags"]),
        gates=gates_from(said["gates"]),
        **{name: said[name] for name in _PLAIN},
    )
