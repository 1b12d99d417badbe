"""A rule as it is said in JSON: by one of five words, and what goes with it.

{"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}
{"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": "2026-01-01T17:00", "tz": "Europe/Berlin"}
{"every": "90m"}        {"at": "2026-12-24T18:00", "tz": "Europe/Berlin"}
{"rule": "0 9 * * 1-5"}, or with an object as answers have it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.errors import InvalidOption
from holdfast.recurrence import Kind, Schedule
from holdfast.schedules.reading import read_rule

KINDS: Final = ("cron", "rrule", "every", "at", "rule")
"""The words that say a rule: one of them."""
_BOUNDS: Final = ("dtstart", "until", "max_runs", "exdate")
_TAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "cron": (*_BOUNDS, "gap"),
    "rrule": (*_BOUNDS, "rdate", "gap"),
    "every": _BOUNDS,
    "at": ("gap",),
    "rule": (),
}
OPTIONS: Final = ("dtstart", "until", "max_runs", "rdate", "exdate", "gap")
WORDS: Final = (*KINDS, "tz", *OPTIONS)
"""All words of a rule."""
_MEANT: Final = {"start": "dtstart", "schedule": "rule", "kind": "rule"}
"""What the engine calls otherwise."""


def rule_of(said: Mapping[str, Any], *, before: Schedule | None = None) -> Schedule:
    """The rule that these words make; others are passed over. What is not said of the zone, or if
    none of the five words is said, is as `before`. `InvalidOption` names the word that is wrong.
    """
    given = {word: said[word] for word in WORDS if said.get(word) is not None}
    kinds = [word for word in KINDS if word in given]
    if not kinds and before is not None:
        changes = {word: said[word] for word in ("tz", *OPTIONS) if word in said}
        return _checked(None, lambda: Schedule.from_json({**before.to_json(), **changes}))
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none"
        raise InvalidOption("rule", f"expected one of {', '.join(KINDS)}, got {got}")
    (kind,) = kinds
    tz = given.get("tz", None if before is None else before.tz)
    for word in OPTIONS:
        if word in given and word not in _TAKES[kind]:
            inside = "; say it inside the object" if kind == "rule" else ""
            takes = ", ".join(("tz", *_TAKES[kind]))
            raise InvalidOption(word, f"expected {takes} beside `{kind}`, got `{word}`{inside}")
    options: dict[str, Any] = {word: given[word] for word in OPTIONS if word in given}
    return _checked(given.get("rule"), lambda: _made(kind, given[kind], tz, options))


def _made(kind: str, value: Any, tz: str | None, options: dict[str, Any]) -> Schedule:
    start = {} if "dtstart" not in options else {"start": options["dtstart"]}
    others = {word: each for word, each in options.items() if word != "dtstart"}
    match kind:
        case "cron":
            return Schedule.cron(value, tz=tz or "UTC", **start, **others)
        case "every":
            return Schedule.every(value, tz=tz, **start, **others)
        case "at":
            return Schedule.once(value, tz=tz, **others)
        case "rrule":
            return Schedule.rrule(value, tz=_unless_said(value, tz), **options)
        case _:
            return read_rule(_with_kind(value), _unless_said(value, tz))


def _unless_said(value: Any, tz: str | None) -> str | None:
    """The zone, unless the rule itself says one."""
    inside = "tz" in value if isinstance(value, Mapping) else "TZID=" in str(value).upper()
    return None if inside else tz


def _with_kind(value: Any) -> Any:
    """A rule object may leave out its kind."""
    if not isinstance(value, Mapping) or "kind" in value:
        return value
    if "rrule" in value and "rules" not in value:
        value = {**{k: v for k, v in value.items() if k != "rrule"}, "rules": [value["rrule"]]}
    known = {"cron": Kind.CRON, "every": Kind.INTERVAL, "rules": Kind.RRULE, "rdate": Kind.RRULE}
    kind = next((kind for word, kind in known.items() if word in value), Kind.ONCE)
    return {"kind": kind.value, **value}


def _checked(rule: object, make: Callable[[], Schedule]) -> Schedule:
    try:
        return make()
    except InvalidOption as error:
        message = str(error).removeprefix(f"{error.option}: ")
        option = _MEANT.get(error.option, error.option)
        if isinstance(rule, Mapping) and option != "rule":
            option = f"rule.{option}"
        elif isinstance(rule, str) and option != "tz":
            option = "rule"
        raise InvalidOption(option, message) from None
