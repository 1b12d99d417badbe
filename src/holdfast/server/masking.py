"""Parameters as they may be shown: secret ones are masked, whether this process knows the task or
not.
"""

from __future__ import annotations

import orjson

from holdfast.core.shown import masked
from holdfast.core.task import Json, Task
from holdfast.definitions.registry import Registry


def parameters_of(task: Task, registry: Registry) -> Json:
    """A task's parameters, without its secrets."""
    definition = registry.get(task.name)
    if definition is None:
        return masked(task.payload, orjson.loads)
    return definition.masked(task.payload)
