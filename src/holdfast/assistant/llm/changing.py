"""From a model's slots to a change of a task that exists, as the grammar answers it.

Which task is meant is found by the words that the user wrote, in the user's own list: a model
cannot name one. When a pause ends and which days are skipped is worked out by the grammar alone;
`agreeing` compares the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.assistant.changes import merged, moved
from holdfast.assistant.compiler import compile_slots
from holdfast.assistant.language.sentences import read_sentence
from holdfast.assistant.llm.answers import Unusable
from holdfast.assistant.old_schedules import runs_between, slots_of_task, zone_of_task
from holdfast.assistant.plan import Plan, Refused, refusal
from holdfast.assistant.present import Present
from holdfast.assistant.slots import Slots
from holdfast.assistant.targets import find_mention
from holdfast.ports.planner import PlanRequest

Task = Mapping[str, Any]
Result = dict[str, Any]


def changed(slots: Slots, request: PlanRequest) -> Result:
    """The change, or a refusal; `Refused` and `Unusable` as the slots deserve."""
    target = _target(slots.target, request)
    task = next((each for each in request.tasks if str(each.get("id")) == target), None)
    if task is None:
        return refusal("no_target").mapping()
    result = _result(slots, task, request)
    if result.get("kind") == "refuse":
        return result
    return {"kind": "update", "op": slots.operation, "target": target, **result}


def _target(words: str | None, request: PlanRequest) -> str | None:
    """The id of the task that these words name; the one last talked about where there are none."""
    found = find_mention(read_sentence(words or "").stream, request.tasks, request.focus)
    if words is not None and not found.named:
        return None
    return found.ids[0] if len(found.ids) == 1 else None


def _result(slots: Slots, task: Task, request: PlanRequest) -> Result:
    match slots.operation:
        case "reschedule":
            return _rescheduled(slots, task, request)
        case "rename":
            if slots.title is None:
                raise Unusable("title: expected the new title, in the words of the request")
            return {"title": slots.title}
        case "deliver":
            return {"delivery": _channels(slots, task)}
        case "skip" if not slots.lines:
            after = request.now + timedelta(seconds=1)
            runs = runs_between(task, request.tz, after, None, slots.skip_runs)
            zone = ZoneInfo(zone_of_task(task, request.tz))
            return {"exdate": [each.astimezone(zone).isoformat() for each in runs]}
        case _:
            return {}


def _channels(slots: Slots, task: Task) -> list[str]:
    held = [str(each) for each in task.get("delivery") or ()]
    match slots.channel_change:
        case "add":
            wanted = [*held, *slots.channels]
        case "remove":
            wanted = [each for each in held if each not in slots.channels]
        case _:
            wanted = list(slots.channels)
    if not wanted:
        raise Unusable("channels: expected at least one that is left")
    return list(dict.fromkeys(wanted))


def _rescheduled(slots: Slots, task: Task, request: PlanRequest) -> Result:
    old = slots_of_task(task, request.tz)
    if slots.shift:
        zone = ZoneInfo(zone_of_task(task, request.tz))
        runs = runs_between(task, request.tz, request.now, None, 1)
        if not runs:
            raise Refused("past")
        now = Present(instant=request.now.astimezone(UTC), zone=zone)
        new = moved(old, slots.shift, now, Present(instant=runs[0], zone=zone))
    else:
        new = merged(old, slots)
    plan = compile_slots(new, request.now, request.tz)
    return plan.schedule() if isinstance(plan, Plan) else plan.mapping()
