"""Everything that was measured, by product and case, and what could not be."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench.environments import Unavailable
from bench.machine import Watch
from bench.peers.contest import Drained, Live
from bench.table import spread

SUBMIT, CALLERS, BULK = "submit", "submit by 8 callers", "bulk"
ONE, BEST, RESULTS = "drain, 1 process", "drain, best", "drain, results kept"


T = TypeVar("T")


@dataclass(slots=True)
class Samples:
    """Rates (tasks per second), costs and latencies, each by product first."""

    watch: Watch
    rates: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    drains: dict[str, list[Drained]] = field(default_factory=dict)
    lives: dict[str, Live] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def rate(self, product: str, case: str, measure: Callable[[], float]) -> None:
        """Take one sample. What cannot be measured is noted once and not tried again."""
        value = self._take(product, case, measure)
        if value is not None:
            self.rates.setdefault(product, {}).setdefault(case, []).append(value)
            _say(f"{product}: {case}: {value:,.0f}/s")

    def drain(self, product: str, case: str, measure: Callable[[], Drained]) -> None:
        """The same for a drain, which has costs besides. They are kept of one process alone."""
        drained = self._take(product, case, measure)
        if drained is not None:
            self.rates.setdefault(product, {}).setdefault(case, []).append(drained.per_second)
            if case == ONE:
                self.drains.setdefault(product, []).append(drained)
            _say(f"{product}: {case}: {drained.per_second:,.0f}/s")

    def live(self, product: str, measure: Callable[[], Live]) -> None:
        live = self._take(product, "pick-up", measure)
        if live is not None:
            self.lives[product] = live
            _say(f"{product}: pick-up: {live.p50_ms:.1f} ms")

    def _take(self, product: str, case: str, measure: Callable[[], T]) -> T | None:
        if case in self.failures.get(product, {}):
            return None
        try:
            with self.watch.watching():
                return measure()
        except Exception as problem:  # noqa: BLE001 - one product's trouble must not end the run
            kind = "" if isinstance(problem, Unavailable) else f"{type(problem).__name__}: "
            self.failures.setdefault(product, {})[case] = f"{kind}{problem}"
            _say(f"{product}: {case}: {kind}{problem}")
            return None

    def median(self, product: str, *cases: str) -> float | None:
        """The highest of the cases' medians; None if none was measured."""
        found = self.rates.get(product, {})
        medians = [statistics.median(found[case]) for case in cases if case in found]
        return max(medians, default=None)

    def cell(self, product: str, case: str) -> str:
        """A case as the table shows it: median (lowest..highest)."""
        values = self.rates.get(product, {}).get(case)
        if not values:
            return "failed" if case in self.failures.get(product, {}) else ""
        return spread(values)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
