"""The JSON of what the assistant answers."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from holdfast.core.task_answers import exact

AnswerStatus = Literal["created", "updated", "needs_confirmation", "refused"]


@exact
class PlannedSchedule(TypedDict):
    """When it runs: `words` in English, the rest as calendars say it. `dtstart` and `exdate` are
    wall times of `tz`; without rules it runs once.
    """

    words: str
    tz: str
    dtstart: str
    rrule: list[str]
    exdate: list[str]


@exact
class AssistantAnswer(TypedDict):
    """What became of a message. `message` says it in words. `task_id` is the schedule that was
    made, changed or would be; `operation` what is done to it, null for a new one. `next_runs` are
    local times with their offset. A refusal names `fields`, gives a `reason` and asks a `question`,
    whose answer goes on with the same request. `planner` is who understood it.
    """

    status: AnswerStatus
    chat_id: str
    message_id: str | None
    message: str
    operation: str | None
    task_id: str | None
    task_ids: list[str]
    title: str | None
    description: str | None
    purpose: str | None
    category: str | None
    delivery_title: str | None
    channels: list[str]
    schedule: PlannedSchedule | None
    next_runs: list[str]
    assumptions: list[str]
    fields: list[str]
    reason: str | None
    question: str | None
    planner: str
