"""A recipient: where what is for an owner is delivered, and when it may make a noise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

RECIPIENT: Final = "recipient"
"""The kind of these records. The key is the owner."""


class QuietHours(NamedTuple):
    """From one wall time to another, past midnight if the second is not later."""

    begin: time
    end: time


class Subscription(NamedTuple):
    """A browser that wants web pushes: where they go, and with what they are encrypted."""

    endpoint: str
    p256dh: str
    auth: str

    @property
    def address(self) -> str:
        """All of it as one text."""
        return json.dumps(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """`unsubscribed` are the channels by which this owner wants nothing any more."""

    owner: str
    email: str | None = None
    webhook_url: str | None = None
    devices: tuple[str, ...] = ()
    web_push: tuple[Subscription, ...] = ()
    timezone: str | None = None
    language: str | None = None
    quiet_hours: QuietHours | None = None
    unsubscribed: tuple[str, ...] = ()

    def quiet_until(self, now: datetime) -> datetime | None:
        """The end of the quiet hours that `now` falls into; None if it may be loud.

        Hours are told by the wall clock of the recipient's zone, UTC if there is none. An hour that
        the clock skips ends when it jumps; one that it repeats is quiet both times.
        """
        if self.quiet_hours is None:
            return None
        zone, until, at = ZoneInfo(self.timezone or "UTC"), None, now
        while (end := _end_of_span(self.quiet_hours, at, zone)) is not None:
            until = at = end  # where a whole day is skipped, the next night begins right then
        return until


def _end_of_span(quiet: QuietHours, now: datetime, zone: ZoneInfo) -> datetime | None:
    spans = _spans(quiet, now.astimezone(zone).date(), zone)
    return next((end for begin, end in spans if begin <= now < end), None)


def _spans(quiet: QuietHours, today: date, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
    """The quiet hours that begin yesterday and today."""
    nights = timedelta(days=0 if quiet.begin < quiet.end else 1)
    for day in (today - timedelta(days=1), today):
        yield (
            _instant(day, quiet.begin, zone, fold=0),
            _instant(day + nights, quiet.end, zone, fold=1),
        )


def _instant(day: date, at: time, zone: ZoneInfo, *, fold: int) -> datetime:
    """A wall time as an instant. Of a skipped one: the moment at which the clock jumped."""
    wall = datetime.combine(day, at, zone)
    early, late = (wall.replace(fold=each).astimezone(UTC) for each in (0, 1))
    if early > late:  # there is no such time: the two readings lie on both sides of the jump
        return _jump(late, early, zone)
    return late if fold else early


def _jump(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The instant between these at which the zone's offset changes."""
    first = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        if middle.astimezone(zone).utcoffset() == first:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)
