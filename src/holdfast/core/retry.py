"""How long to wait before the next attempt: `base × multiplier^(n-1)`, capped, with full jitter.

Full jitter draws from [0, delay]: after an outage a thousand tasks come back spread out, not as one
herd. The draw is an argument, so that this stays pure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """A backoff curve. Times in seconds; `jitter` False gives exactly the computed delay."""

    base: float = 5.0
    multiplier: float = 2.0
    cap: float = 3600.0
    jitter: bool = True

    def delay(self, n: int, draw: float) -> float:
        """Seconds to wait after the n-th charged attempt; `draw` is uniform in [0, 1)."""
        # A float overflows near 2**1024; past the cap the exact power does not matter.
        power = self.multiplier ** min(n - 1, 500) if self.multiplier > 1 else 1.0
        full = min(self.cap, self.base * power)
        return full * draw if self.jitter else full


def exponential(
    base: float = 5.0, multiplier: float = 2.0, *, cap: float = 3600.0, jitter: bool = True
) -> RetryPolicy:
    """Grow the delay by `multiplier` each time: the default is 5 s, 10 s, 20 s … up to an hour."""
    return RetryPolicy(base=base, multiplier=multiplier, cap=cap, jitter=jitter)


def fixed(delay: float = 600.0, *, jitter: bool = False) -> RetryPolicy:
    """Wait the same time before every retry: ten minutes unless told otherwise."""
    return RetryPolicy(base=delay, multiplier=1.0, cap=delay, jitter=jitter)
