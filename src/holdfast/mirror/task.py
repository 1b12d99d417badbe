"""The mirror task as a worker runs it."""

from __future__ import annotations

from typing import Final

from holdfast.core.fleet import MIRROR
from holdfast.core.mirror import NAME, QUEUE, RETRIES, TIMEOUT
from holdfast.core.retry import exponential
from holdfast.definitions.built_in import BuiltIn
from holdfast.mirror.writing import Mirror
from holdfast.ports.mirror import Documents
from holdfast.ports.store import Store

RETRY: Final = exponential("5s", 2, cap="10m")


def mirror_task_of(store: Store, documents: Documents) -> BuiltIn:
    """What brings these documents up to date."""
    mirror = Mirror(store, documents)

    async def bring(schedule: str, execution: str | None = None, follow: bool = False) -> str:
        return await mirror.bring(schedule, execution, follow=follow)

    return BuiltIn(
        name=NAME,
        queue=QUEUE,
        capabilities=frozenset({MIRROR}),
        handler=bring,
        options={"max_retries": RETRIES, "timeout": TIMEOUT, "retry": RETRY},
    )
