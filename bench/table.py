"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """A Markdown table; all but the first column are numbers, unless told otherwise."""
    rule = "|---|" + ("---:|" if numbers else "---|") * (len(head) - 1)
    return "".join(f"{line}\n" for line in (_line(head), rule, *map(_line, rows)))


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def spread(values: Sequence[float]) -> str:
    """A cell: median (lowest..highest)."""
    middle = f"{median(values):,.0f}"
    return f"{middle} ({min(values):,.0f}..{max(values):,.0f})" if len(values) > 1 else middle
