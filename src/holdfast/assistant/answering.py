"""The answers of the assistant, each with what stays open and which task it is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from holdfast.assistant.conversation import Open
from holdfast.assistant.drafts import Draft, next_runs, rule_of_plan, shown_rule
from holdfast.assistant.language.sentences import read_sentence, slots_of
from holdfast.assistant.requests import Request
from holdfast.assistant.telling import done, names_of, where_to
from holdfast.core.assistant_answers import AnswerStatus, AssistantAnswer
from holdfast.core.task import Json
from holdfast.errors import InvalidOption
from holdfast.ports.planner import Planned
from holdfast.recurrence import Schedule
from holdfast.schedules.series import Series, Status

FIELDS: Final = {
    "at": "nextExecutionTime", "rule": "recurrence", "tz": "timezone", "until": "end",
    "name": "target", "every": "recurrence",
}  # fmt: skip
"""What the verbs of schedules call otherwise than refusals do."""


class Step(NamedTuple):
    """An answer, what is open after it, and the task that was talked about."""

    answer: AssistantAnswer
    open: Open | None = None
    focus: str | None = None


class Answering:
    """Makes the answers to one request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def refused(self, fields: Sequence[str], reason: str, question: str) -> Step:
        """Nothing is open after it."""
        return Step(self._refusal(fields, reason, question, "offline"))

    def declined(self) -> Step:
        """The user said no."""
        return self.refused(["confirm"], "you said no, so nothing was done", "What else is to do?")

    def asked(self, planned: Planned, text: str) -> Step:
        """A refusal whose question may be answered."""
        said = planned.result
        answer = self._refusal(said["fields"], said["reason"], said["question"], planned.planner)
        if slots_of(read_sentence(text)).evidence or said["fields"] != ["purpose"]:
            return Step(answer, self._open("question", text, planned, tuple(said["fields"])))
        return Step(answer)  # small talk: there is nothing to go on with

    def asked_which(self, tasks: Sequence[Series], text: str) -> Step:
        names = ", ".join(repr(each.about.title or each.id) for each in tasks[:5])
        reason = "it is not clear which task is meant"
        question = f"Which task: {names}?" if tasks else "There is no task yet. What is to do?"
        pending = Open(
            kind="question", text=text, timezone=self._request.timezone, fields=("target",)
        )
        return Step(self._refusal(["target"], reason, question, "offline"), pending)

    def could_not(self, error: InvalidOption, planned: Planned, text: str) -> Step:
        """A plan that the verbs of schedules refuse."""
        field = FIELDS.get(error.option, error.option)
        reason = str(error).removeprefix(f"{error.option}: ")
        answer = self._refusal([field], reason, "What should be changed?", planned.planner)
        return Step(answer, self._open("question", text, planned, (field,)))

    def created(self, planned: Planned, series: Series, draft: Draft) -> Step:
        said = self._draft(planned, draft)
        message = f"{draft.title}: {draft.rule.words}{where_to(planned.result, draft.channels)}."
        answer = self._answer("created", message, task_ids=[series.id], **said)
        return Step(answer, focus=series.id)

    def may_create(self, planned: Planned, draft: Draft, text: str) -> Step:
        to = where_to(planned.result, draft.channels)
        question = f"Shall I do this: {draft.title}, {draft.rule.words}{to}?"
        said = self._draft(planned, draft)
        answer = self._answer("needs_confirmation", question, question=question, **said)
        return Step(answer, self._open("confirmation", text, planned))

    def changed(self, planned: Planned, targets: Sequence[Series]) -> Step:
        said = self._targets(planned, targets)
        message = done(planned.result, targets, said.get("next_runs") or ())
        focus = targets[0].id if len(targets) == 1 else None
        return Step(self._answer("updated", message, **said), focus=focus)

    def may_change(self, planned: Planned, targets: Sequence[Series], text: str) -> Step:
        question = f"Shall I {planned.result['op'].replace('_', ' ')} {names_of(targets)}?"
        said = self._targets(planned, targets)
        answer = self._answer("needs_confirmation", question, question=question, **said)
        return Step(answer, self._open("confirmation", text, planned))

    # Steps.

    def _refusal(
        self, fields: Sequence[str], reason: str, question: str, planner: str
    ) -> AssistantAnswer:
        return self._answer(
            "refused", f"{reason[:1].upper()}{reason[1:]}. {question}", fields=list(fields),
            reason=reason, question=question, planner=planner,
        )  # fmt: skip

    def _draft(self, planned: Planned, draft: Draft) -> dict[str, Json]:
        return {
            "title": draft.title,
            "description": draft.description,
            "purpose": draft.purpose,
            "category": draft.category,
            "delivery_title": draft.delivery_title,
            "channels": list(draft.channels or ()),
            "assumptions": list(draft.assumptions),
            "planner": planned.planner,
            **self._when(draft.rule),
        }

    def _targets(self, planned: Planned, targets: Sequence[Series]) -> dict[str, Json]:
        found: dict[str, Json] = {
            "operation": planned.result["op"],
            "task_ids": [each.id for each in targets],
            "assumptions": list(planned.result.get("assumptions") or ()),
            "planner": planned.planner,
        }
        if len(targets) != 1:
            return found
        series, about = targets[0], targets[0].about
        is_moved = planned.result["op"] == "reschedule"
        rule = series.rule if not is_moved else _moved(planned, series.rule)
        return {
            **found,
            "title": about.title,
            "description": about.description,
            "purpose": about.purpose,
            "category": about.category,
            "delivery_title": about.delivery_title,
            "channels": list(about.channels),
            **self._when(rule, series),
        }

    def _when(self, rule: Schedule, series: Series | None = None) -> dict[str, Json]:
        is_still = series is not None and series.status is Status.PAUSED
        runs = [] if is_still else next_runs(rule, self._request.now)
        if series is not None and series.skips:
            left_out = {at.timestamp() for at in series.skips}
            runs = [run for run in runs if _timestamp(run) not in left_out]
        return {"schedule": shown_rule(rule), "next_runs": runs}

    def _open(self, kind: str, text: str, planned: Planned, fields: tuple[str, ...] = ()) -> Open:
        return Open(
            kind="confirmation" if kind == "confirmation" else "question",
            text=text,
            timezone=self._request.timezone,
            message_id=self._request.message_id,
            fields=fields,
            result=dict(planned.result),
            title=planned.title,
            category=planned.category,
        )

    def _answer(self, status: AnswerStatus, message: str, **said: Json) -> AssistantAnswer:
        answer: AssistantAnswer = {
            "status": status,
            "chat_id": self._request.chat_id,
            "message_id": self._request.message_id,
            "message": message,
            "operation": None,
            "task_id": None,
            "task_ids": [],
            "title": None,
            "description": None,
            "purpose": None,
            "category": None,
            "delivery_title": None,
            "channels": [],
            "schedule": None,
            "next_runs": [],
            "assumptions": [],
            "fields": [],
            "reason": None,
            "question": None,
            "planner": "offline",
        }
        answer.update(said)  # type: ignore[typeddict-item] # made above, by these names
        ids = answer["task_ids"]
        answer["task_id"] = ids[0] if len(ids) == 1 else None
        return answer


def _moved(planned: Planned, rule: Schedule) -> Schedule:
    return rule_of_plan({**planned.result, "tz": planned.result.get("tz") or rule.tz})


def _timestamp(run: str) -> float:
    return datetime.fromisoformat(run).timestamp()
