"""How a timer with a horizon reaches any instant: in hops, each of them well within the horizon.

A wake-up that comes before the instant computes nothing new. It reads what is stored, and hops on.
So the horizon changes how often we are woken, never when something fires.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

LARGEST_MARGIN: Final = 3600.0
"""Seconds that stay between a hop and the horizon: their clock and ours differ, and a service that
refuses what is 30 days and one second away must not see such a thing.
"""


def reach(horizon: float) -> float:
    """The seconds that one hop spans at most: the horizon without its margin, which is an hour, or
    a tenth of a short horizon.
    """
    return horizon - min(LARGEST_MARGIN, horizon / 10)


def next_hop(at: datetime, *, now: datetime, horizon: float) -> datetime:
    """When to be woken next on the way to `at`: then, if it is near enough; it may have passed."""
    within = reach(horizon)
    if (at - now).total_seconds() <= within:
        return at
    return now + timedelta(seconds=within)
