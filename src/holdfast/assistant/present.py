"""The present moment as one zone sees it, and the way between wall times and instants there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Present:
    """Now, in a zone. `instant` is aware and in UTC; `wall` is what the clock there shows."""

    instant: datetime
    zone: ZoneInfo

    @property
    def wall(self) -> datetime:
        """The local time, naive."""
        return self.instant.astimezone(self.zone).replace(tzinfo=None, fold=0)

    @property
    def today(self) -> date:
        """The local day."""
        return self.wall.date()

    def to_instant(self, wall: datetime) -> datetime:
        """A wall time as an instant: in a gap with the offset before it, the first of two."""
        return wall.replace(tzinfo=self.zone, fold=0).astimezone(UTC)

    def to_wall(self, instant: datetime) -> datetime:
        """An instant as the local clock shows it, naive; `fold` is kept."""
        return instant.astimezone(self.zone).replace(tzinfo=None)

    def is_ahead(self, wall: datetime) -> bool:
        """Whether a wall time is yet to come."""
        return self.to_instant(wall) > self.instant


def midnight(day: date) -> datetime:
    """The first wall time of a day."""
    return datetime.combine(day, time())
