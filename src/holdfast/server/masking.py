"""Parameters as they may be shown: secret ones are masked, whether this process knows the task or
not.
"""

from __future__ import annotations

from holdfast.codec.secrets import masked
from holdfast.core.task import Json, Task
from holdfast.definitions.registry import Registry


def parameters_of(task: Task, registry: Registry) -> Json:
    """A task's parameters, without its secrets."""
    definition = registry.get(task.name)
    return masked(task.payload) if definition is None else definition.masked(task.payload)
