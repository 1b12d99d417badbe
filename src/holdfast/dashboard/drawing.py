"""Where the lines of small pictures go. The templates draw them, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

WIDTH: Final = 240
HEIGHT: Final = 48
EDGE: Final = 2
MOST_POINTS: Final = 60


class Line(NamedTuple):
    """A line over time: `points` for a polyline, `area` for what is below it."""

    points: str
    area: str
    highest: float
    latest: float


def line(values: Sequence[float]) -> Line | None:
    """The line through these, from zero to the highest; None for fewer than two."""
    if len(values) < 2:
        return None
    drawn, top = _fewer(values), max(*values, 1)
    step = WIDTH / (len(drawn) - 1)
    room = HEIGHT - 2 * EDGE
    places = [
        f"{number * step:.1f},{EDGE + room - value / top * room:.1f}"
        for number, value in enumerate(drawn)
    ]
    points = " ".join(places)
    return Line(points, f"0,{HEIGHT} {points} {WIDTH},{HEIGHT}", max(values), values[-1])


def _fewer(values: Sequence[float]) -> Sequence[float]:
    """Not more than can be told apart: of neighbours the highest, so that no peak is lost."""
    size = math.ceil(len(values) / MOST_POINTS)
    if size == 1:
        return values
    return [max(values[at : at + size]) for at in range(0, len(values), size)]


class Bar(NamedTuple):
    """A part of a bar, in thousandths of its width."""

    kind: str
    label: str
    x: float
    width: float


SMALLEST: Final = 4.0
"""Thousandths: what is shorter is drawn so wide, or nobody would see it."""


def bars(parts: Sequence[tuple[str, str, float, float]]) -> list[Bar]:
    """Parts (kind, label, from, to) to scale, beside each other from the first to the last."""
    if not parts:
        return []
    begin, end = parts[0][2], max(part[3] for part in parts)
    whole = max(end - begin, 1e-6)
    drawn = []
    for kind, label, since, until in parts:
        x = (since - begin) / whole * 1000
        width = max((until - since) / whole * 1000, SMALLEST)
        drawn.append(Bar(kind, label, round(min(x, 1000 - SMALLEST), 1), round(width, 1)))
    return drawn


class Column(NamedTuple):
    """A bar that stands beside others, in thousandths of the width and of the height."""

    label: str
    value: float
    x: float
    width: float
    height: float


def columns(values: Sequence[tuple[str, float]]) -> list[Column]:
    """One for each value, the highest as high as there is room."""
    highest, room = max([value for _, value in values], default=0.0), 1000 / max(len(values), 1)
    return [
        Column(
            label,
            value,
            round(number * room + room * 0.1, 1),
            round(room * 0.8, 1),
            round(value / highest * 1000, 1) if highest else 0.0,
        )
        for number, (label, value) in enumerate(values)
    ]
