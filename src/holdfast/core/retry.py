"""How long to wait before the next attempt: `base × multiplier^(n-1)`, capped, with full jitter.

Full jitter draws from [0, delay]: after an outage a thousand tasks come back spread out, not as one
herd. The draw is an argument, so that this stays pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.duration import Duration, parse_duration
from holdfast.errors import InvalidOption


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """A backoff curve. Times in seconds; `jitter` False gives exactly the computed delay."""

    base: float = 5.0
    multiplier: float = 2.0
    cap: float = 3600.0
    jitter: bool = True

    def delay(self, n: int, draw: float) -> float:
        """Seconds to wait after the n-th charged attempt; `draw` is uniform in [0, 1)."""
        try:
            full = min(self.cap, self.base * self.multiplier ** (n - 1))
        except OverflowError:
            # Past the cap the exact power does not matter.
            full = self.cap if self.base > 0 else 0.0
        return full * draw if self.jitter else full


def exponential(
    base: Duration = 5.0, multiplier: float = 2.0, *, cap: Duration = 3600.0, jitter: bool = True
) -> RetryPolicy:
    """Grow the delay by `multiplier` each time: the default is 5 s, 10 s, 20 s … up to an hour."""
    if not 1 <= multiplier <= 1000:
        raise InvalidOption("multiplier", f"expected a number from 1 to 1000, got {multiplier!r}")
    return RetryPolicy(
        base=_seconds("base", base),
        multiplier=float(multiplier),
        cap=_seconds("cap", cap),
        jitter=jitter,
    )


def fixed(delay: Duration = 600.0, *, jitter: bool = False) -> RetryPolicy:
    """Wait the same time before every retry: ten minutes unless told otherwise."""
    seconds = _seconds("delay", delay)
    return RetryPolicy(base=seconds, multiplier=1.0, cap=seconds, jitter=jitter)


def _seconds(option: str, value: Duration) -> float:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InvalidOption(option, str(error)) from None
