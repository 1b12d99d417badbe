"""Options that say what a schedule is: its rule, how it behaves, what it submits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from holdfast.cli.command import OptionGroup, text_option
from holdfast.errors import InvalidOption

if TYPE_CHECKING:
    from holdfast.recurrence import Schedule

Rule = Annotated[
    str,
    typer.Argument(
        metavar="RULE",
        help="'0 9 * * 1-5', 'FREQ=WEEKLY;BYDAY=MO', 'every 90m', or '2026-12-24T18:00'.",
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--tz", metavar="ZONE", help="Whose time the rule is in: Europe/Berlin; else UTC."
    ),
]
Number = partial(typer.Option, min=1, rich_help_panel="How it behaves")

_rule = partial(text_option, panel="The rule")
_behaves = partial(text_option, panel="How it behaves")
_about = partial(text_option, panel="About it")
_task = partial(text_option, panel="Each task")

_BOUNDS: Final = {
    "dtstart": _rule(
        "--start", "--dtstart", says="Where it begins, in its own time.", metavar="TIME"
    ),
    "until": _rule("--until", says="No run after this.", metavar="TIME"),
    "max_runs": Annotated[
        int | None, typer.Option("--max-runs", min=1, help="So many.", rich_help_panel="The rule")
    ],
    "exdate": _rule("--except", says="Not then; repeat for several.", metavar="TIME", many=True),
    "rdate": _rule("--also", says="Then too; repeat for several.", metavar="TIME", many=True),
    "gap": _rule("--gap", says="Where the clock skips that time.", metavar="shift|skip"),
}
_BEHAVIOUR: Final = {
    "overlap": _behaves(
        "--overlap",
        says="While the run before has not ended.",
        metavar="skip|queue_one|queue_all|cancel_running|allow",
    ),
    "catch_up": _behaves(
        "--catch-up", says="Of runs that nobody was there for.", metavar="one|all|skip"
    ),
    "catch_up_most": Annotated[
        int | None, Number("--catch-up-most", help="At most so many of them.")
    ],
    "catch_up_window": _behaves(
        "--catch-up-window", says="None older than this.", metavar="DURATION"
    ),
    "jitter": _behaves("--jitter", says="Later by up to this, never early.", metavar="DURATION"),
    "pause_after_failures": Annotated[
        int | None, Number("--pause-after-failures", help="Pause after so many in a row.")
    ],
}
_ABOUT: Final = {
    "owner": _about("--owner", says="Whose it is, and its tasks."),
    "title": _about("--title", says="What people call it."),
    "description": _about("--description", says="What it is."),
    "purpose": _about("--purpose", says="What it is for."),
    "category": _about("--category", says="What kind of thing."),
    "delivery_title": _about("--delivery-title", says="What its results are called."),
    "channels": _about("--channel", says="Where results go; repeat for several.", many=True),
    "estimated_units": Annotated[
        float | None,
        typer.Option("--estimated-units", help="What a run may cost.", rich_help_panel="About it"),
    ],
    "chat_id": _about("--chat-id", says="The chat that it comes from."),
    "message_id": _about("--message-id", says="The message that it comes from."),
}
_TASK: Final = {
    "queue": _task("--queue", "-q", says="Into this queue."),
    "priority": _task(
        "--priority", "-p", says="How urgent.", metavar="critical|high|normal|low|0-9"
    ),
    "expires": _task("--expires", says="Cancel if not started by then.", metavar="DURATION"),
    "tags": _task("--tag", "-t", says="Tag it; repeat for several.", many=True),
    "callback": _task("--callback", says="Told when it has ended.", metavar="URL"),
    "max_retries": _task("--max-retries", says="Attempts after the first.", metavar="N|unlimited"),
    "timeout": _task("--timeout", says="Limit on one attempt.", metavar="DURATION|none"),
    "retry": _task(
        "--retry", says="How long to wait before a retry.", metavar="'exponential(5s, 2)'"
    ),
}


class Wanted(NamedTuple):
    """What was said of a schedule beside its rule."""

    name: str | None
    words: dict[str, Any]
    task: dict[str, Any]


def _read(given: dict[str, Any]) -> Wanted:
    from holdfast.definitions.readers import read_retries  # noqa: PLC0415

    said = {word: value for word, value in given.items() if value not in (None, [])}
    if "max_retries" in said:
        said["max_retries"] = read_retries("max_retries", said["max_retries"])
    task = {word: said.pop(word) for word in _TASK if word in said}
    return Wanted(said.pop("name", None), said, task)


def _read_bounds(given: dict[str, Any]) -> Callable[[str, str | None], Schedule]:
    """What makes the rule of its text and zone."""
    said = {word: value for word, value in given.items() if value not in (None, [])}
    return lambda text, tz: read_rule_text(text, tz, said)


def read_rule_text(text: str, tz: str | None, bounds: dict[str, Any]) -> Schedule:
    """The rule that this text says, within these bounds."""
    from holdfast.schedules.reading import read_rule, spelling  # noqa: PLC0415
    from holdfast.schedules.rule_words import rule_of  # noqa: PLC0415

    if not bounds:
        return read_rule(text, tz)
    word, value = spelling(text)
    return rule_of({word: value, "tz": tz, **bounds})


def read_time(option: str, text: str | None, zone: str) -> datetime | None:
    """An instant; without an offset it is wall time in the zone."""
    from holdfast.definitions.instants import read_instant  # noqa: PLC0415

    if text is None:
        return None
    try:
        is_naive = datetime.fromisoformat(text.strip()).utcoffset() is None
    except ValueError:
        raise InvalidOption(
            option, f"expected a time such as 2026-12-24T18:00 or 2026-12-24, got {text!r}"
        ) from None
    return read_instant(option, text, zone if is_naive else None)


ScheduleOptions = Annotated[
    Wanted,
    OptionGroup(
        {
            "name": text_option("--name", "-n", says="Its name; else one is made up."),
            **_BEHAVIOUR,
            **_ABOUT,
            **_TASK,
        },
        _read,
    ),
]
RuleOptions = Annotated[Callable[[str, str | None], Any], OptionGroup(_BOUNDS, _read_bounds)]
