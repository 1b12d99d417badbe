"""The page of log events and the code say the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .pages import ROOT

SOURCE = ROOT / "src" / "holdfast"
PAGE = ROOT / "docs" / "reference" / "log-events.md"
LEVELS = {"debug", "info", "warning", "error"}


class Listed(NamedTuple):
    """One row of the page; fields may be absent where they make no sense."""

    level: str
    fields: frozenset[str]


def listed_events() -> dict[str, Listed]:
    rows = [row.split(" | ") for row in PAGE.read_text().splitlines() if row.startswith("| `")]
    return {
        name.strip("| `"): Listed(level, frozenset(fields.strip(" |").replace("`", "").split()))
        for name, level, _meaning, fields in rows
    }


EVENTS = listed_events()


class Call(NamedTuple):
    """One place that says an event."""

    place: str
    level: str
    event: str | None
    fields: frozenset[str]


def calls() -> Iterator[Call]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "testing" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (level := _level(node.func)):
                first = node.args[0] if node.args else None
                event = first.value if isinstance(first, ast.Constant) else None
                fields = frozenset(word.arg for word in node.keywords if word.arg)
                place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                yield Call(place, level, event if isinstance(event, str) else None, fields)


def _level(function: ast.expr) -> str | None:
    """The level, if this is `log.info`, `self._log.info` and the like."""
    if not isinstance(function, ast.Attribute) or function.attr not in {*LEVELS, "exception"}:
        return None
    owner = function.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return function.attr if name.strip("_") in {"log", "logger"} else None


def test_every_event_in_the_code_is_listed_with_its_level_and_fields() -> None:
    problems = []
    for call in calls():
        listed = EVENTS.get(call.event or "")
        if listed is None:
            problems.append(f"{call.place}: {call.event!r} is not listed on {PAGE.name}")
        elif listed.level != call.level:
            problems.append(f"{call.place}: {call.event} is listed as {listed.level}")
        elif more := call.fields - listed.fields:
            problems.append(f"{call.place}: {call.event} is not listed with {sorted(more)}")

    assert problems == []


def test_every_listed_event_is_said_somewhere() -> None:
    said = {call.event for call in calls()}

    assert [event for event in EVENTS if event not in said] == []


def test_no_module_logs_past_the_list() -> None:
    """`EventLog` is the only way to the log, or the test above would be blind."""
    own_ways = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if "testing" not in path.parts
        and path.name != "logs.py"
        and any(way in path.read_text() for way in ("getLogger(", "structlog.get_logger("))
    ]

    assert own_ways == []
