"""How the last hour went, from the numbers that are kept of the whole fleet (`holdfast.metrics`):
the same on every server, and there after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from holdfast.core.alerts import Severity
from holdfast.core.metrics import WAITS
from holdfast.dashboard.overview import Alert, Minute, Wait
from holdfast.metrics.fleet import Fleet
from holdfast.server.service import Service

EVERY: Final = 10.0


class FleetTrends:
    """`Trends` of the fleet, and the agent that reads them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._fleet: Fleet | None = None

    async def tick(self) -> float:
        self._fleet = await self._service.fleet()
        return EVERY

    def minutes(self) -> Sequence[Minute]:
        return [
            Minute(each.at + timedelta(seconds=each.seconds), each.completed, each.failed)
            for each in (() if self._fleet is None else self._fleet.minutes)
        ]

    def depths(self) -> Mapping[str, Sequence[int]]:
        notes = () if self._fleet is None else self._fleet.notes
        names = {name for note in notes for name in note.depths}
        return {name: [note.depths.get(name, 0) for note in notes] for name in names}

    def waits(self) -> Sequence[Wait]:
        found = []
        for priority, spread in ({} if self._fleet is None else self._fleet.lately.waits).items():
            half, most = (spread.quantile(share, WAITS.bounds) for share in (0.5, 0.95))
            if half is not None and most is not None:
                found.append(Wait(priority, half, most))
        return found

    def alerts(self) -> Sequence[Alert]:
        return [
            Alert(
                f"{alert.text} {alert.advice}",
                f"/{alert.about}",
                is_urgent=alert.severity is Severity.CRITICAL,
            )
            for alert in (() if self._fleet is None else self._fleet.alerts)
        ]
