"""The form of a schedule: its fields, what they make, and how a schedule looks in them.

The form says what the API says, in the same words, so what is wrong is found by the same rules. Of
an edit only what was changed is sent: what people have not touched stays as it is, whoever else
changes it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from starlette.datastructures import QueryParams

from holdfast.core.shown import MASK
from holdfast.core.task import Json, Priority
from holdfast.dashboard.problems import NONE, Problems, problems_of
from holdfast.dashboard.rendering import pretty
from holdfast.errors import HoldfastError
from holdfast.recurrence import Kind, Schedule
from holdfast.schedules.reading import spelling
from holdfast.schedules.rule_words import KINDS
from holdfast.schedules.series import CatchUpMode, Overlap
from holdfast.server.bodies import parse
from holdfast.server.problems import Refused


class Field(NamedTuple):
    """One field of the form. `choices` are the values of a list and how they are called."""

    name: str
    title: str
    kind: str = "text"
    hint: str = ""
    choices: Mapping[str, str] = {}


class Part(NamedTuple):
    """Fields that belong together; those of an `is_folded` part are seldom asked for."""

    title: str
    fields: Sequence[Field]
    is_folded: bool = False


_OVERLAPS: Final = {
    Overlap.SKIP.value: "skip the new run",
    Overlap.QUEUE_ONE.value: "let one wait",
    Overlap.QUEUE_ALL.value: "let all wait",
    Overlap.CANCEL_RUNNING.value: "cancel the old run",
    Overlap.ALLOW.value: "run side by side",
}
_CATCH_UPS: Final = {
    CatchUpMode.ONE.value: "make up for the last one",
    CatchUpMode.ALL.value: "make up for all",
    CatchUpMode.SKIP.value: "leave them out",
}
_PRIORITIES: Final = {"": "as the task says"} | {each.value: each.value for each in Priority}

WHEN: Final = Part(
    "When",
    (
        Field("rule", "Rule", hint="0 9 * * 1-5, every 90m, FREQ=MONTHLY;BYDAY=-1FR, or a time"),
        Field("tz", "Zone", hint="Europe/Berlin"),
    ),
)
BOUNDS: Final = Part(
    "Bounds of the rule",
    (
        Field("dtstart", "Begins", hint="2026-12-24T18:00, in the zone"),
        Field("until", "Not after", hint="2027-12-24"),
        Field("max_runs", "Runs at most", "whole"),
        Field("exdate", "Not at", "list", "Days or times, with commas between"),
        Field("gap", "Times the clock skips", "choice", "", {"shift": "move", "skip": "leave out"}),
    ),
    is_folded=True,
)
BEHAVIOUR: Final = Part(
    "How it behaves",
    (
        Field("overlap", "If the one before still runs", "choice", "", _OVERLAPS),
        Field("catch_up", "Runs missed while nobody could fire", "choice", "", _CATCH_UPS),
        Field("catch_up_most", "Made up for at most", "whole"),
        Field("catch_up_window_seconds", "Not older than (seconds)", "number"),
        Field("jitter_seconds", "Spread over (seconds)", "number"),
        Field("pause_after_failures", "Pause after failures in a row", "whole"),
    ),
)
ABOUT: Final = Part(
    "About it",
    (
        Field("owner", "Owner"),
        Field("purpose", "Purpose", "area"),
        Field("description", "Description", "area"),
        Field("category", "Category"),
        Field("delivery_title", "Title of what is delivered"),
        Field("channels", "Channels", "list", "inbox, email"),
        Field("estimated_units", "Units a run may use", "number"),
    ),
    is_folded=True,
)
OPTIONS: Final = Part(
    "Options of the task",
    (
        Field("queue", "Queue", hint="as the task says"),
        Field("priority", "Priority", "choice", "", _PRIORITIES),
        Field("tags", "Tags", "list"),
        Field("max_retries", "Retries", "whole", "as the task says"),
        Field("timeout_seconds", "Time limit (seconds)", "number", "as the task says"),
    ),
    is_folded=True,
)
PARAMETERS: Final = Field("parameters", "Arguments (JSON)", "json")
TITLE: Final = Field("title", "Title")
_WHAT: Final = (Field("task_type", "Task"), TITLE, Field("name", "Name", hint="made up if empty"))
NEW: Final = (Part("What", (*_WHAT, PARAMETERS)), WHEN, BOUNDS, BEHAVIOUR, ABOUT, OPTIONS)
EDIT: Final = (Part("What", (TITLE, PARAMETERS)), WHEN, BOUNDS, BEHAVIOUR, ABOUT)

RULE_FIELDS: Final = tuple(field.name for part in (WHEN, BOUNDS) for field in part.fields)
DEFAULTS: Final[Mapping[str, str]] = {
    "tz": "UTC", "parameters": "{}", "gap": "shift", "overlap": "skip", "catch_up": "one",
    "catch_up_most": "100", "jitter_seconds": "0",
}  # fmt: skip
"""What stands in the fields of a new one. What is left so is not sent."""
_EMPTY: Final[Mapping[str, Json]] = {"channels": [], "jitter_seconds": 0.0, "parameters": {}}
"""What an emptied field takes back, where that is not null."""
_RENAMED: Final = {**dict.fromkeys(KINDS, "rule"), "catch_up_window": "catch_up_window_seconds"}

Texts = Mapping[str, str]
Values = dict[str, Json]


def fields_of(parts: Sequence[Part]) -> list[Field]:
    return [field for part in parts for field in part.fields]


def texts_in(words: QueryParams, parts: Sequence[Part]) -> dict[str, str]:
    """The fields as they were sent."""
    return {field.name: words.get(field.name, "").strip() for field in fields_of(parts)}


def problems_in(error: HoldfastError | Refused, parts: Sequence[Part]) -> Problems:
    """What is wrong, at the fields."""
    return problems_of(error, [field.name for field in fields_of(parts)], _RENAMED)


def new_body(texts: Texts) -> tuple[Values, Problems]:
    """The body that makes this schedule, but for the fields that cannot be read."""
    wanted = {
        name: text
        for name, text in texts.items()
        if text and (text != DEFAULTS.get(name) or name in ("parameters", "tz"))
    }
    return _read({"rule": "", **wanted}, NEW)


def changed_body(texts: Texts, before: Texts) -> tuple[Values, Problems]:
    """The body that changes what differs from `before`."""
    fields = [field for field in fields_of(EDIT) if field.name not in RULE_FIELDS]
    differ = [each.name for each in fields if texts[each.name] != before[each.name].strip()]
    body: Values = {name: _EMPTY.get(name) for name in differ if not texts[name]}
    wanted = {name: texts[name] for name in differ if texts[name]}
    if any(texts[name] != before[name].strip() for name in RULE_FIELDS):
        wanted |= rule_texts(texts)
    read, problems = _read(wanted, EDIT)
    if MASK in str(read.get("parameters", "")):
        problems = Problems({**problems.fields, "parameters": "What is secret was not shown: "
                             "type it again instead of the stars."})  # fmt: skip
    return body | read, problems


def rule_body(texts: Texts) -> tuple[Values, Problems]:
    """The words of the rule alone."""
    return _read(rule_texts(texts), (WHEN, BOUNDS))


def rule_texts(texts: Texts) -> dict[str, str]:
    """What is said of the rule; the zone and the rule itself always are."""
    said = {name: texts[name] for name in RULE_FIELDS if texts[name]}
    if said.get("gap") == DEFAULTS["gap"]:
        del said["gap"]
    return {"rule": "", **said}


def _read(texts: Texts, parts: Sequence[Part]) -> tuple[Values, Problems]:
    kinds = {field.name: field.kind for field in fields_of(parts)}
    body: Values = {}
    wrong: dict[str, str] = {}
    for name, text in texts.items():
        try:
            if name == "rule":
                body |= _rule(text)
            else:
                body[name] = _READERS[kinds[name]](text)
        except (ValueError, Refused) as error:
            wrong[name] = error.detail if isinstance(error, Refused) else str(error)
    return body, Problems(wrong) if wrong else NONE


def _rule(text: str) -> Values:
    if not text:
        raise ValueError("expected a rule, such as 0 9 * * 1-5 or every 90m")
    if text.startswith("{"):
        return {"rule": _json(text)}
    word, said = spelling(text)
    return {word: said}


def _whole(text: str) -> int:
    digits = text.replace(",", "")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 16):
        raise ValueError(f"expected a whole number, got {text[:40]!r}")
    return int(digits)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected a number, got {text[:40]!r}") from None


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.replace("\n", ",").split(",") if each.strip()]


def _json(text: str) -> Json:
    try:
        return parse(text.encode(errors="surrogatepass"))
    except Refused as refused:
        raise ValueError(refused.detail.removeprefix("the body is ")) from None


_READERS: Final[Mapping[str, Callable[[str], Json]]] = {
    "text": str, "area": str, "choice": str, "whole": _whole, "number": _number, "list": _list,
    "json": _json,
}  # fmt: skip


def texts_of(shown: Mapping[str, Json], rule: Schedule) -> dict[str, str]:
    """A schedule as it is told, in the fields of an edit."""
    said = {field.name: _text(shown.get(field.name), field.kind) for field in fields_of(EDIT)}
    return said | _rule_texts(rule)


def _text(value: Json, kind: str) -> str:
    match kind:
        case "json":
            return pretty(value)
        case "list":
            return ", ".join(value or ())
        case "number" if value is not None:
            return f"{value:g}"
        case _:
            return "" if value is None else str(value)


def _rule_texts(rule: Schedule) -> dict[str, str]:
    said = rule.to_json()
    tz = said.pop("tz")
    texts = {"rule": _plain(rule), "tz": tz, "dtstart": "", "until": "", "max_runs": "",
             "exdate": "", "gap": "shift"}  # fmt: skip
    if not texts["rule"]:
        return texts | {"rule": pretty(said)}
    if rule.kind is not Kind.ONCE:
        texts["dtstart"] = said["dtstart"] or ""
    for name in ("until", "max_runs"):
        texts[name] = _text(said.get(name), "text")
    return texts | {"exdate": ", ".join(said.get("exdate", ())), "gap": said.get("gap", "shift")}


def _plain(rule: Schedule) -> str:
    """The rule in one line; nothing if that would leave something out."""
    said = rule.to_json()
    is_odd = said.get("second_pass") or said.get("overlap", "first") != "first" or rule.rdate
    match rule.kind:
        case Kind.CRON if not is_odd:
            return cast("str", rule.line)
        case Kind.INTERVAL if not is_odd and rule.step is not None:
            return f"every {_length(rule.step)}"
        case Kind.ONCE if not is_odd:
            return cast("str", said["dtstart"])
        case Kind.RRULE if not is_odd and len(rule.rules) == 1:
            return rule.rules[0]
        case _:
            return ""


def _length(seconds: int) -> str:
    size, unit = next(
        (each for each in ((86_400, "d"), (3600, "h"), (60, "m")) if seconds % each[0] == 0),
        (1, "s"),
    )
    return f"{seconds // size}{unit}"


def known_tasks(names: Sequence[str]) -> list[str]:
    """To choose from: those that are not our own."""
    return sorted(name for name in names if not name.startswith("holdfast."))
