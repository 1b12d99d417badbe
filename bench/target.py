"""One target beside what was measured. Not met is said as plainly as met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.table import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One wish. `value` is None if a part of it was not measured in this run; `limit` is None where
    nothing was promised."""

    what: str
    wanted: str
    value: float | None
    limit: float | None
    at_most: bool = False
    form: str = "{:,.0f}"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        if self.limit is None:
            return ""
        met = self.value <= self.limit if self.at_most else self.value >= self.limit
        return "met" if met else "**not met**"

    @property
    def measured(self) -> str:
        return "" if self.value is None else self.form.format(self.value)


def verdicts(targets: Iterable[Target]) -> str:
    """The targets as a table."""
    rows = [(t.what, t.wanted, t.measured, t.verdict) for t in targets]
    return table(("", "wanted", "measured", ""), rows)
