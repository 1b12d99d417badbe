"""The verbs of schedules, each as a conversation with the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack
from urllib.parse import quote
from zoneinfo import ZoneInfo

from holdfast.core.json_form import JsonForm
from holdfast.core.schedule_answers import SCHEDULE, SCHEDULE_RUN
from holdfast.core.schedule_answers import BriefSchedule as BriefAnswer
from holdfast.core.schedule_state import ScheduleState
from holdfast.core.task import Json, TaskId
from holdfast.definitions.declaration import ScheduleKeywords
from holdfast.definitions.readers import read_duration
from holdfast.errors import InvalidOption, ScheduleNotFound
from holdfast.http.talk import Talk, ask, ask_raw
from holdfast.http.values import (
    BriefSchedule,
    ImportedCalendar,
    RemoteRunPage,
    RemoteSchedulePage,
    UnreadEvent,
)
from holdfast.http.verbs import NamedTask, RemoteCall
from holdfast.recurrence import PreviewRow, Schedule

SCHEDULES: Final = "/api/v1/schedules"
BRIEF: Final = JsonForm(BriefAnswer, BriefSchedule)

Steered = ScheduleState | BriefSchedule


class ScheduleVerbs:
    """What can be asked about schedules. Answers are brief for tokens without the scope `read`."""

    def create(
        self,
        call: RemoteCall | NamedTask,
        rule: object,
        /,
        *,
        tz: str | None = None,
        name: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        **words: Unpack[ScheduleKeywords],
    ) -> Talk[Steered]:
        """Submit this call again and again: `create("report", "0 9 * * 1-5", tz="Europe/Berlin",
        arguments={"user": 7})`, or `create(client.call("report", {"user": 7}, queue="slow"), …)`.
        """
        body = {**_task(call, arguments), **_rule(rule), **_words(words)}
        body |= _given(tz=tz, name=name)
        return _steered((yield from ask("POST", SCHEDULES, body=body)))

    def get(self, name: str) -> Talk[ScheduleState | None]:
        """One schedule; None if there is none of that name."""
        try:
            return SCHEDULE.read((yield from ask("GET", _path(name))))
        except ScheduleNotFound:
            return None

    def list(
        self, *, owner: str | None = None, after: str = "", limit: int = 100
    ) -> Talk[RemoteSchedulePage]:
        """Schedules by name, of everybody or of one owner."""
        query = {"limit": str(limit), **_given(owner=owner, after=after or None)}
        data = yield from ask("GET", SCHEDULES, query=query)
        return RemoteSchedulePage(tuple(map(SCHEDULE.read, data["schedules"])), data["next"])

    def update(
        self,
        name: str,
        /,
        *,
        call: RemoteCall | None = None,
        rule: object | None = None,
        tz: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        **words: Unpack[ScheduleKeywords],
    ) -> Talk[Steered]:
        """Change what is given, keep the rest. It goes on from now: nothing is run twice, nor made
        up for.
        """
        body = {**(call or {}), **({} if rule is None else _rule(rule)), **_words(words)}
        body |= _given(tz=tz, parameters=None if arguments is None else dict(arguments))
        return _steered((yield from ask("PATCH", _path(name), body=body)))

    def pause(
        self, name: str, *, until: datetime | None = None, note: str | None = None
    ) -> Talk[Steered]:
        """Run no more, until somebody resumes it or for a while."""
        body = _given(until=until, note=note)
        return _steered((yield from ask("POST", _path(name, "pause"), body=body, repeatable=True)))

    def resume(self, name: str) -> Talk[Steered]:
        """Go on from now, without what would have run meanwhile."""
        return _steered((yield from ask("POST", _path(name, "resume"), repeatable=True)))

    def skip(self, name: str) -> Talk[Steered]:
        """Leave out the next run that is not left out yet."""
        return _steered((yield from ask("POST", _path(name, "skip"))))

    def trigger(self, name: str) -> Talk[TaskId]:
        """Run it now, beside its rule: the next runs stay as they are."""
        return TaskId((yield from ask("POST", _path(name, "trigger")))["task_id"])

    def backfill(
        self, name: str, begin: datetime, end: datetime, *, most: int | None = None
    ) -> Talk[Sequence[TaskId]]:
        """Run what the rule says for this range, but for the runs that were fired at their time;
        `end` is not inside. `InvalidOption` if there are more than `most`: nothing is run then.
        """
        body = {"begin": begin, "end": end, **_given(most=most)}
        data = yield from ask("POST", _path(name, "backfill"), body=body)
        return [TaskId(each) for each in data["task_ids"]]

    def delete(self, name: str) -> Talk[bool]:
        """Forget the schedule. Its tasks stay. False if there is none."""
        try:
            yield from ask("DELETE", _path(name))
        except ScheduleNotFound:
            return False
        return True

    def runs(self, name: str, *, after: str = "", limit: int = 100) -> Talk[RemoteRunPage]:
        """What became of its runs, newest first."""
        query = {"limit": str(limit), **_given(after=after or None)}
        data = yield from ask("GET", _path(name, "runs"), query=query)
        return RemoteRunPage(tuple(map(SCHEDULE_RUN.read, data["runs"])), data["next"])

    def preview(
        self, name: str, n: int = 10, *, after: datetime | None = None, tz: str | None = None
    ) -> Talk[Sequence[PreviewRow]]:
        """Its next runs, from now on unless `after` says otherwise; in any zone."""
        at = None if after is None else after.isoformat()
        query = {"n": str(n), **_given(after=at, tz=tz)}
        data = yield from ask("GET", _path(name, "preview"), query=query)
        return [_row(each) for each in data["runs"]]

    def try_rule(
        self,
        rule: object,
        n: int | None = None,
        *,
        tz: str | None = None,
        after: datetime | None = None,
        between: tuple[datetime, datetime] | None = None,
        show_tz: str | None = None,
    ) -> Talk[Sequence[PreviewRow]]:
        """The runs of a rule that is no schedule yet. Nothing is stored."""
        within = None if between is None else list(between)
        body = {**_rule(rule), **_given(n=n, tz=tz, after=after, between=within, show_tz=show_tz)}
        data = yield from ask("POST", f"{SCHEDULES}/preview", body=body, repeatable=True)
        return [_row(each) for each in data["runs"]]

    def calendar(self, *, owner: str | None = None) -> Talk[str]:
        """Every active schedule as an iCalendar."""
        query = _given(owner=owner)
        return (yield from ask_raw("GET", f"{SCHEDULES}/calendar.ics", query=query)).decode()

    def import_calendar(
        self,
        calendar: str,
        task: NamedTask,
        arguments: Mapping[str, Json] | None = None,
        *,
        tz: str | None = None,
        owner: str | None = None,
        queue: str | None = None,
        skip_unread: bool = False,
    ) -> Talk[ImportedCalendar]:
        """Make a schedule of every entry of an iCalendar, for the same task. `tz` is of entries
        that name no zone. If one cannot be read nothing is made, unless those are to be skipped.
        """
        body = {"calendar": calendar, **_task(task, arguments)}
        body |= _given(tz=tz, owner=owner, queue=queue, unread="skip" if skip_unread else None)
        data = yield from ask("POST", f"{SCHEDULES}/import", body=body)
        made = [BRIEF.read(each) for each in data["schedules"]]
        return ImportedCalendar(made, [UnreadEvent(**each) for each in data["unread"]])


def _path(name: str, action: str = "") -> str:
    return f"{SCHEDULES}/{quote(name, safe='')}" + (f"/{action}" if action else "")


def _given(**words: Any) -> dict[str, Any]:
    return {word: value for word, value in words.items() if value is not None}


def _steered(data: Json) -> Steered:
    return SCHEDULE.read(data) if "rule" in data else BRIEF.read(data)


def _task(call: RemoteCall | NamedTask, arguments: Mapping[str, Json] | None) -> dict[str, Json]:
    if isinstance(call, RemoteCall):
        if arguments is not None:
            raise InvalidOption("arguments", "the call has arguments already")
        return dict(call)
    name = call if isinstance(call, str) else call.name
    return {"task_type": name, "parameters": dict(arguments or {})}


def _rule(rule: object) -> dict[str, Json]:
    """A rule as JSON: one that was made, its JSON, text in any spelling, a time or an interval."""
    match rule:
        case Schedule():
            return {"rule": rule.to_json()}
        case datetime(tzinfo=ZoneInfo(key=tz)):
            return {"at": rule.isoformat(), "tz": tz}
        case datetime():
            return {"at": rule.isoformat()}
        case timedelta():
            return {"every": rule.total_seconds()}
        case _:
            return {"rule": rule}


def _words(words: ScheduleKeywords) -> dict[str, Json]:
    """The behaviour of a schedule as JSON has it: durations are seconds."""
    said: dict[str, Any] = {**words}
    for word in ("jitter", "catch_up_window"):
        if word in said:
            value = said.pop(word)
            said[f"{word}_seconds"] = None if value is None else read_duration(word, value)
    if "channels" in said:
        said["channels"] = list(said["channels"])
    return said


def _row(data: Json) -> PreviewRow:
    meant = data["meant"]
    return PreviewRow(
        local=datetime.fromisoformat(data["local"]),
        utc=datetime.fromisoformat(data["utc"]),
        abbreviation=data["abbreviation"],
        flags=tuple(data["flags"]),
        meant=None if meant is None else datetime.fromisoformat(meant),
        skipped=tuple(data["skipped"]),
    )
