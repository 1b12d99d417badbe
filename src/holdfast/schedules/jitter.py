"""When a run really starts: a little later, the same for everybody who works it out.

So that a thousand schedules of nine o'clock do not start at once. Never early, and never by more
than a tenth of the time to the next run.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from holdfast.recurrence import Schedule

PART: Final = 0.1


def jittered(series_id: str, rule: Schedule, at: datetime, most: float) -> datetime:
    """When the run of this instant starts."""
    return at if most <= 0.0 else jittered_until(series_id, at, rule.next_after(at), most)


def jittered_until(
    series_id: str, at: datetime, following: datetime | None, most: float
) -> datetime:
    """The same for those who know the run after it."""
    if following is not None:
        most = min(most, PART * (following - at).total_seconds())
    drawn = blake2b(f"{series_id} {at.isoformat()}".encode(), digest_size=8).digest()
    return at + timedelta(seconds=most * int.from_bytes(drawn) / 2**64)
