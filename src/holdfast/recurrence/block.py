"""Reads the lines of a calendar entry that say when it happens: DTSTART, RRULE, RDATE, EXDATE."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from holdfast.errors import InvalidOption
from holdfast.recurrence.moments import Moment, read_moment
from holdfast.recurrence.rules import Rule, parse_rule
from holdfast.recurrence.zones import find_zone, to_datetime, to_wall

MOST_TEXT: Final = 200_000
MOST_RULES: Final = 50
MOST_DATES: Final = 10_000
_LINE: Final = re.compile(r"(?P<name>[A-Za-z-]+)(?P<parameters>(?:;[^:;]*)*):(?P<value>.*)")


@dataclass(slots=True)
class Block:
    """What the lines said; `tz` is the TZID of DTSTART."""

    rules: list[Rule] = field(default_factory=list)
    dtstart: Moment | None = None
    tz: str | None = None
    rdate: list[Moment] = field(default_factory=list)
    exdate: list[Moment] = field(default_factory=list)


def parse_block(text: object) -> Block:
    """Read one RRULE, or the lines of a calendar entry."""
    if not isinstance(text, str):
        raise InvalidOption("rrule", f"expected a rule such as FREQ=DAILY, got {text!r}")
    if len(text) > MOST_TEXT:
        raise InvalidOption(
            "rrule", f"expected at most {MOST_TEXT:,} characters, got {len(text):,}"
        )
    block = Block()
    unfolded = re.sub(r"\r?\n[ \t]", "", text)  # RFC 5545, 3.1: long lines are folded
    for line in unfolded.splitlines():
        if line.strip():
            _read_line(block, line.strip())
    if not (block.rules or block.rdate or block.dtstart):
        raise InvalidOption("rrule", f"expected a rule such as FREQ=DAILY, got {text[:40]!r}")
    if len(block.rules) > MOST_RULES:
        raise InvalidOption("rrule", f"expected at most {MOST_RULES} rules, got {len(block.rules)}")
    return block


def _read_line(block: Block, line: str) -> None:
    match = _LINE.fullmatch(line)
    name = match["name"].upper() if match else "RRULE"
    if name == "RRULE":
        block.rules.append(parse_rule(match["value"] if match else line))
        return
    assert match is not None
    parameters = _parameters(name, match["parameters"])
    match name:
        case "DTSTART":
            if block.dtstart is not None:
                raise InvalidOption("dtstart", "expected DTSTART once, got it twice")
            block.dtstart = _typed("dtstart", match["value"], parameters)
            block.tz = parameters.get("TZID")
        case "RDATE" | "EXDATE":
            dates = block.rdate if name == "RDATE" else block.exdate
            for value in match["value"].split(","):
                dates.append(_in_zone(name.lower(), value, parameters))
        case "EXRULE":
            raise InvalidOption(
                "rrule",
                "expected RRULE, RDATE and EXDATE, got EXRULE, which RFC 5545 withdrew: exclude "
                "days in the rule itself, or list them in EXDATE",
            )
        case _:
            raise InvalidOption(
                "rrule", f"expected lines of DTSTART, RRULE, RDATE and EXDATE, got {name[:30]!r}"
            )


def _parameters(name: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in text.split(";")[1:]:
        key, _, value = each.partition("=")
        found[key.strip().upper()] = value.strip().strip('"')
    unknown = found.keys() - {"TZID", "VALUE"}
    if unknown:
        raise InvalidOption(
            name.lower(), f"expected TZID= and VALUE= before the colon, got {min(unknown)[:30]!r}"
        )
    return found


def _typed(name: str, value: str, parameters: dict[str, str]) -> Moment:
    kind = parameters.get("VALUE", "").upper()
    if kind not in ("", "DATE", "DATE-TIME"):
        raise InvalidOption(name, f"expected VALUE=DATE or DATE-TIME, got {kind[:30]!r}")
    moment = read_moment(name, value)
    if kind and (kind == "DATE-TIME") != isinstance(moment, datetime):
        raise InvalidOption(name, f"expected a value of type {kind}, got {value[:40]!r}")
    return moment


def _in_zone(name: str, value: str, parameters: dict[str, str]) -> Moment:
    """A moment of RDATE or EXDATE. Local to a TZID it becomes an instant; the caller makes it local
    again where that is the zone of the schedule.
    """
    moment = _typed(name, value, parameters)
    if "TZID" not in parameters or not isinstance(moment, datetime) or moment.tzinfo is not None:
        return moment
    zone = find_zone(parameters["TZID"])
    return to_datetime(zone.instants(to_wall(moment), "shift", "first")[0]).astimezone(UTC)
