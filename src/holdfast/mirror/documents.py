"""Schedules and executions as the documents of the mirror. Pure.

The names are those that clients of the mirror know; `docs/how-to/mirror-to-firestore.md` says what
each holds. A document of Firestore has limits (1 MiB, no list inside a list), so what people put
into tasks is text here.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import orjson

from holdfast.core.shown import decoded, masked
from holdfast.core.task import Cost, Json, State, Task
from holdfast.recurrence import Kind
from holdfast.recurrence.moments import Moment
from holdfast.schedules.calendar_rules import CalendarRules, calendar_rules
from holdfast.schedules.series import Series
from holdfast.schedules.showing import next_run

LONGEST_CONTENT: Final = 700_000
"""Bytes. Of a longer result the beginning is told."""
LONGEST_PAYLOAD: Final = 200_000
"""Bytes. A longer one is left out: half of it would be no JSON."""
CUT: Final = "…"
_JUST_BEFORE: Final = timedelta(microseconds=1)


def schedule_document(series: Series) -> dict[str, Json]:
    """A schedule, as `tasks/{id}`."""
    about = series.about
    return {
        "id": series.id,
        "title": about.title,
        "description": about.description,
        "purposeOfTask": about.purpose,
        "isOneTimeExecution": series.rule.kind is Kind.ONCE,
        "rruleExpression": rrule_lines(series),
        "nextExecutionTime": next_run(series),
        "timezone": series.rule.tz,
        "status": series.status.value,
        "category": about.category,
        "delivery": list(about.channels),
        "deliveryTitle": about.delivery_title,
        "queryPerExecution": about.estimated_units,
        "createdByUserId": about.owner,
        "createdByChatId": about.chat_id,
        "currentChatMessageId": about.message_id,
        "currentCloudTaskId": series.open[-1] if series.open else None,
        "currentPayload": _payload_text(series.template.payload),
        "createdAt": series.created_at,
        "updatedAt": series.updated_at,
    }


def execution_document(series: Series, task: Task, *, is_delivered: bool) -> dict[str, Json]:
    """A run of a schedule, as `tasks/{id}/executions/{id}`."""
    said = decoded(task.result, orjson.loads) if task.state is State.COMPLETED else None
    used = _used(task.cost, said)
    return {
        "id": task.id,
        "taskId": series.id,
        "createdAt": task.created_at,
        "content": _content(said),
        "chatId": _text_in(said, "chat_id") or series.about.chat_id,
        "messageId": _text_in(said, "message_id") or series.about.message_id,
        "createdByUserId": task.owner,
        "queries": used.units,
        "tokens": used.tokens_in + used.tokens_out,
        "status": task.state.value,
        "progress": _progress(task),
        "isDelivered": is_delivered,
    }


def rrule_lines(series: Series) -> str | None:
    """The rule in the words of RFC 5545, with its start and what is left out; None if it runs once.

    What no rule can say is told run by run, as far as `calendar_rules` does.
    """
    rule = series.rule
    if rule.kind is Kind.ONCE:
        return None
    since = series.created_at
    now = since if series.next_at is None else series.next_at - _JUST_BEFORE
    said = calendar_rules(rule, now, since=since, skips=series.skips)
    return None if said is None else "\n".join(_lines(said))


def _lines(said: CalendarRules) -> list[str]:
    lines = [_line("DTSTART", said.start, said.tz)]
    lines += [f"RRULE:{rule}" for rule in said.rules]
    lines += [_line("RDATE", moment, said.tz) for moment in said.rdate]
    lines += [_line("EXDATE", moment, said.tz) for moment in said.exdate]
    return lines


def _line(name: str, moment: Moment, tz: str) -> str:
    if not isinstance(moment, datetime):
        return f"{name};VALUE=DATE:{moment:%Y%m%d}"
    if moment.tzinfo is not None or tz == "UTC":
        return f"{name}:{moment:%Y%m%dT%H%M%S}Z"
    return f"{name};TZID={tz}:{moment:%Y%m%dT%H%M%S}"


def _payload_text(payload: bytes) -> str | None:
    text = orjson.dumps(masked(payload, orjson.loads))
    return text.decode() if len(text) <= LONGEST_PAYLOAD else None


def _content(said: Json) -> str | None:
    """What a run came to: the content of an agent, or whatever its task returned, as text."""
    value = said.get("content", said) if isinstance(said, dict) else said
    if value is None:
        return None
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    whole = text.encode()
    if len(whole) <= LONGEST_CONTENT:
        return text
    return whole[:LONGEST_CONTENT].decode(errors="ignore") + CUT


def _text_in(said: Json, name: str) -> str | None:
    value = said.get(name) if isinstance(said, dict) else None
    return value if isinstance(value, str) else None


def _used(cost: Cost, said: Json) -> Cost:
    """What the task reported; if it reported nothing, what its result says."""
    usage = said.get("usage") if isinstance(said, dict) else None
    if cost != Cost() or not isinstance(usage, dict):
        return cost
    units, came, went = (
        value if isinstance(value := usage.get(name), (int, float)) else 0
        for name in ("units", "tokens_in", "tokens_out")
    )
    return Cost(units=float(units), tokens_in=int(came), tokens_out=int(went))


def _progress(task: Task) -> Json:
    if task.progress is None:
        return None
    done, total, message = task.progress.done, task.progress.total, task.progress.message
    return {"done": done, "total": total, "message": message}
