"""Sentences that say what is true now that a task was changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from holdfast.core.task import Json
from holdfast.schedules.series import Series

_CHANNELS: Final[Mapping[str, str]] = {"email": "email", "inbox": "the inbox", "push": "push"}


def done(result: Mapping[str, Json], targets: Sequence[Series], next_runs: Sequence[str]) -> str:
    """What an operation has done to these tasks, in one sentence."""
    names, one = names_of(targets), targets[0]
    match result["op"]:
        case "reschedule":
            return f"Rescheduled {names}: {one.rule.words}."
        case "pause":
            return f"Paused {names}{_until(result.get('until'), one)}."
        case "resume":
            return f"Resumed {names}{_next(next_runs)}."
        case "cancel":
            return f"Cancelled {names}."
        case "run_now":
            return f"Started {names} now; its schedule stays as it is."
        case "skip":
            return f"Skipping {names}{_on(result.get('exdate') or (), one)}{_next(next_runs)}."
        case "deliver":
            return f"{names} now {_goes(targets)} {channels_in_words(one.about.channels)}."
        case _:
            return f"It is called {names} now."


def names_of(targets: Sequence[Series]) -> str:
    """The titles of tasks; only the first few of many."""
    names = [f"“{each.about.title or each.id}”" for each in targets]
    return names[0] if len(names) == 1 else f"{len(names)} tasks ({', '.join(names[:5])})"


def where_to(result: Mapping[str, Json], channels: Sequence[str] | None) -> str:
    """ ", by email" where the request said so."""
    return f", by {channels_in_words(channels)}" if result.get("delivery") and channels else ""


def channels_in_words(channels: Sequence[str]) -> str:
    """ "email and push"."""
    said = [_CHANNELS.get(each, each) for each in channels]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def moment(at: datetime) -> str:
    """ "Monday 23 November 2026, 00:00"."""
    return f"{at:%A} {at.day} {at:%B %Y, %H:%M}"


def _goes(targets: Sequence[Series]) -> str:
    return "goes by" if len(targets) == 1 else "go by"


def _until(text: str | None, series: Series) -> str:
    return "" if text is None else f" until {_local(text, series)}"


def _on(runs: Sequence[str], series: Series) -> str:
    shown = [_local(each, series) for each in runs]
    if not shown:
        return ""
    rest = f" and {len(shown) - 3} more runs" if len(shown) > 3 else ""
    return f" on {'; '.join(shown[:3])}{rest}"


def _next(runs: Sequence[str]) -> str:
    return f"; its next run is on {moment(datetime.fromisoformat(runs[0]))}" if runs else ""


def _local(text: str, series: Series) -> str:
    at = datetime.fromisoformat(text)
    return moment(at.astimezone(ZoneInfo(series.rule.tz)) if at.tzinfo is not None else at)
