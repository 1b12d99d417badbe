"""How long to wait before the next attempt: `base × multiplier^(n-1)`, capped, with full jitter.

Full jitter draws from [0, delay]: after an outage a thousand tasks come back spread out, not as one
herd. The draw is an argument, so that this stays pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
    if isinstance(multiplier, bool) or not 1 <= multiplier <= 1000:
        raise InvalidOption("multiplier", f"expected a number from 1 to 1000, got {multiplier!r}")
    _refuse_no_truth(jitter)
    return RetryPolicy(
        base=_seconds("base", base),
        multiplier=float(multiplier),
        cap=_seconds("cap", cap),
        jitter=jitter,
    )


def fixed(delay: Duration = 600.0, *, jitter: bool = False) -> RetryPolicy:
    """Wait the same time before every retry: ten minutes unless told otherwise."""
    _refuse_no_truth(jitter)
    seconds = _seconds("delay", delay)
    return RetryPolicy(base=seconds, multiplier=1.0, cap=seconds, jitter=jitter)


def parse_policy(value: object) -> RetryPolicy:
    """Read a policy as settings, command lines and JSON have it: `exponential(5s, 2, cap=1h)`,
    `fixed(10m)`, or a mapping of the same names (`{"base": "5s", "jitter": false}`, `{"delay":
    600}`). `ValueError` with "expected …, got …".
    """
    if isinstance(value, RetryPolicy):
        return value
    try:
        if isinstance(value, Mapping):
            return (fixed if "delay" in value else exponential)(**value)
        if isinstance(value, str) and (call := _CALL.fullmatch(value.strip())):
            return _called(call["name"], call["arguments"] or "")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_EXPECTED}, got {value!r} ({error})") from None
    raise ValueError(f"{_EXPECTED}, got {value!r}")


_EXPECTED: Final = (
    'expected a backoff such as "exponential(5s, 2, cap=1h, jitter=false)" or "fixed(10m)"'
)
_CALL: Final = re.compile(r"(?P<name>exponential|fixed)\s*(?:\((?P<arguments>[^()]*)\))?")
_TRUTH: Final = {"true": True, "false": False}


def _called(name: str, arguments: str) -> RetryPolicy:
    given: list[Any] = []
    named: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in arguments.split(","))):
        key, equals, text = (word.strip() for word in part.partition("="))
        value = _TRUTH.get(text.lower(), text)
        if not equals:
            given.append(key)
        else:
            named[key] = float(text) if key == "multiplier" else value
    if name == "exponential" and len(given) > 1:
        given[1] = float(given[1])
    return (exponential if name == "exponential" else fixed)(*given, **named)


def _seconds(option: str, value: Duration) -> float:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InvalidOption(option, str(error)) from None


def _refuse_no_truth(jitter: object) -> None:
    if not isinstance(jitter, bool):
        raise InvalidOption("jitter", f"expected True or False, got {jitter!r}")
