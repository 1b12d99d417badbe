"""The grammar as a planner."""

from __future__ import annotations

from holdfast.assistant.parsing import parse
from holdfast.ports.planner import Planned, PlanRequest


class OfflinePlanner:
    """Reads requests without a model: always there, in milliseconds."""

    async def plan(self, request: PlanRequest) -> Planned:
        """As the port promises; what the grammar understood may be carried out at once."""
        return Planned(
            result=parse(
                request.text,
                request.now,
                request.tz,
                tasks=list(request.tasks),
                focus=request.focus,
            )
        )
