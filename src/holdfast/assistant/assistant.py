"""The assistant: a message in, a task made or changed, and an answer that says so.

    read the message -> is something open? -> plan -> refuse, ask, or carry out -> remember

Plans come from a planner that stores nothing and knows neither owner nor addresses; what is done
with one stands here. One message makes one task at most, of the one agent, for the owner that the
caller is; inside of a run there is no assistant at all, so tasks cannot breed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import uuid4

from holdfast.assistant.answering import Answering, Step
from holdfast.assistant.consent import consent_of
from holdfast.assistant.continuing import Continued, continued, with_other_channels
from holdfast.assistant.conversation import Conversation, Open, Said, read_conversation
from holdfast.assistant.draft_changes import changed_draft, draft_as_task
from holdfast.assistant.drafts import Draft, draft_of
from holdfast.assistant.requests import Request, read_request
from holdfast.assistant.updating import is_over, needs_a_yes, told, update
from holdfast.core.assistant_answers import AssistantAnswer
from holdfast.core.record import Changes
from holdfast.core.task import Json
from holdfast.definitions.context import current_context
from holdfast.errors import HoldfastError, InvalidOption, RecordConflict
from holdfast.ports.planner import Planned, Planner, PlanRequest
from holdfast.recurrence import Schedule
from holdfast.schedules.book import Book
from holdfast.schedules.series import Series

Tell = Callable[[str], Awaitable[None]]
"""Told what is being done, for people who watch."""
Parse = Callable[..., Mapping[str, Json]]
Channels = Callable[[str | None, Sequence[str] | None], Awaitable[tuple[str, ...]]]
"""The channels to use for this owner; `InvalidOption` if one of those asked for cannot be."""

NO_AGENT: Final = (
    "there is nobody to run what people ask for: register a handler with `@app.agent`, or name a "
    "task in the setting `agent`"
)
DUE: Final = timedelta(seconds=1)
LATE: Final = "that time has come by the server's clock: at once"
MOST_TASKS: Final = 200
"""Tasks that one owner may have through the assistant."""


async def silent(_step: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """The verbs. `agent` is the name of the task that runs what people ask for."""

    book: Book
    planner: Planner
    parse: Parse
    channels: Channels
    agent: str | None

    async def message(
        self,
        messages: Sequence[Mapping[str, Json]],
        *,
        chat_id: str,
        timezone: str,
        owner: str | None = None,
        now: datetime | None = None,
        confirm: bool | None = None,
        tell: Tell = silent,
    ) -> AssistantAnswer:
        """Understand the last of these messages, and do what it says. A message with an `id` that
        was answered before is answered again, and nothing is done twice.
        """
        if current_context() is not None:
            raise HoldfastError("a running task cannot ask the assistant: tasks must not breed")
        request = read_request(
            messages, chat_id=chat_id, timezone=timezone, owner=owner, confirm=confirm,
            now=await self.book.store.now() if now is None else now,
        )  # fmt: skip
        before = await read_conversation(self.book.store, request.owner, request.chat_id)
        if request.message_id is not None and request.message_id in before.answers:
            known: AssistantAnswer = before.answers[request.message_id]
            return known
        step = await self._decide(request, before, tell)
        await self._remember(request, before, step)
        return step.answer

    async def _decide(self, request: Request, before: Conversation, tell: Tell) -> Step:
        answering, pending = Answering(request), before.open
        if pending is not None and pending.kind == "confirmation":
            consent = consent_of(request.text)
            if request.confirm or consent is True:
                return await self._confirmed(request, pending, tell)
            if consent is False:
                return answering.declined()
            changed = changed_draft(pending, self._read_of_draft(request, pending))
            if changed is not None:
                return await self._resumed(replace(request, confirm=False), changed, tell)
        if pending is not None and "channels" in pending.fields:
            result = with_other_channels(pending.result, request.text)
            if result is not None:
                return await self._resumed(request, replace(pending, result=result), tell)
        if request.confirm:
            return answering.refused(["confirm"], "there is nothing to confirm", "What is to do?")
        await tell("Understanding your task")
        await tell("Understanding past tasks")
        tasks = await self._tasks(request.owner)
        text, focus, open_text = self._whole_text(request, before, tasks)
        plan = PlanRequest(
            text=text, now=request.now, tz=request.timezone, focus=focus,
            history=request.history, tasks=tuple(told(each) for each in tasks),
        )  # fmt: skip
        planned = await self.planner.plan(plan)
        if planned.result["kind"] == "refuse":
            return answering.asked(planned, open_text or text)
        try:
            return await self._do(request, planned, text, tasks, tell)
        except InvalidOption as error:
            return answering.could_not(error, planned, text)

    async def _confirmed(self, request: Request, pending: Open, tell: Tell) -> Step:
        return await self._resumed(replace(request, confirm=None), pending, tell, is_sure=True)

    def _read_of_draft(self, request: Request, pending: Open) -> Mapping[str, Json]:
        """The message, read as a change of what waits for a yes."""
        task = draft_as_task(pending)
        return self.parse(
            request.text, request.now, request.timezone, tasks=[task], focus=task["id"]
        )

    async def _resumed(
        self, request: Request, pending: Open, tell: Tell, *, is_sure: bool = False
    ) -> Step:
        """Go on with what was planned before."""
        planned = Planned(result=pending.result, title=pending.title, category=pending.category)
        asked = replace(request, timezone=pending.timezone,
                        message_id=request.message_id or pending.message_id)  # fmt: skip
        tasks = await self._tasks(request.owner)
        try:
            return await self._do(asked, planned, pending.text, tasks, tell, is_sure=is_sure)
        except InvalidOption as error:
            return Answering(asked).could_not(error, planned, pending.text)

    async def _do(
        self,
        request: Request,
        planned: Planned,
        text: str,
        tasks: Sequence[Series],
        tell: Tell,
        *,
        is_sure: bool = False,
    ) -> Step:
        answering, result = Answering(request), planned.result
        must_ask = not is_sure and (not planned.agreed or request.confirm is False)
        if result["kind"] == "update":
            targets = [each for each in tasks if result["target"] in ("*", each.id)]
            if not targets:
                return answering.asked_which(tasks, text)
            if must_ask or (needs_a_yes(result["op"], targets) and not is_sure):
                return answering.may_change(planned, targets, text)
            await tell("Updating a task" if len(targets) == 1 else "Updating your tasks")
            changed = [await update(self.book, each, result) for each in targets]
            return answering.changed(planned, changed)
        if len(tasks) >= MOST_TASKS:
            return answering.refused(
                ["limit"], f"there are {MOST_TASKS} tasks already", "Which of them may go?"
            )
        draft = draft_of(planned, text)
        channels = await self.channels(request.owner, draft.channels)
        draft = replace(draft, channels=channels)
        if result["kind"] == "once":
            draft = await self._not_past(request, draft)
        if must_ask:
            return answering.may_create(planned, draft, text)
        await tell("Creating a task")
        return answering.created(planned, await self._create(request, draft), draft)

    async def _not_past(self, request: Request, draft: Draft) -> Draft:
        """A run whose time has come by the store's clock, but not by the user's, is due at once."""
        now = await self.book.store.now()
        if draft.rule.next_after(now) is not None or draft.rule.next_after(request.now) is None:
            return draft
        soon = Schedule.once(now + DUE, tz=draft.rule.tz)
        return replace(draft, rule=soon, assumptions=(*draft.assumptions, LATE))

    async def _create(self, request: Request, draft: Draft) -> Series:
        name = _name(request)
        try:
            return await self.book.create(
                self._agent(), draft.rule, name=name, arguments=self._arguments(request, draft),
                owner=request.owner, title=draft.title, description=draft.description,
                purpose=draft.purpose, category=draft.category,
                delivery_title=draft.delivery_title, channels=list(draft.channels or ()),
                chat_id=request.chat_id, message_id=request.message_id,
            )  # fmt: skip
        except InvalidOption as error:
            # The same message again, whose first answer was never remembered.
            known = None if name is None or error.option != "name" else await self.book.get(name)
            if known is None:
                raise
            return known

    def _agent(self) -> str:
        if self.agent is None:
            raise HoldfastError(NO_AGENT)
        return self.agent

    def _arguments(self, request: Request, draft: Draft) -> dict[str, Json]:
        """What the agent is told, as far as it takes it."""
        told = {
            "purpose": draft.purpose,
            "title": draft.title,
            "chat_id": request.chat_id,
            "message_id": request.message_id,
            "timezone": request.timezone,
        }
        definition = self.book.registry.get(self._agent())
        takes = told if definition is None else definition.parameters
        return {name: value for name, value in told.items() if name in takes}

    async def _tasks(self, owner: str | None) -> list[Series]:
        """The owner's tasks that are not over."""
        page = await self.book.list(owner=owner or "", limit=MOST_TASKS)
        return [series for series in page.schedules if not is_over(series)]

    def _whole_text(
        self, request: Request, before: Conversation, tasks: Sequence[Series]
    ) -> Continued:
        """What is to be planned: the message, or the request that it completes; and the focus."""
        pending = before.open
        if pending is None or pending.kind != "question":
            return Continued(request.text, before.focus)
        known = [told(each) for each in tasks]

        def read(text: str, focus: str | None) -> Mapping[str, Json]:
            return self.parse(text, request.now, request.timezone, tasks=known, focus=focus)

        found = continued(pending, request.text, before.focus, read)
        return found._replace(focus=found.focus or before.focus)

    async def _remember(self, request: Request, before: Conversation, step: Step) -> None:
        at = request.now.isoformat()
        while True:
            after = before.saying(
                Said("user", request.text, at, request.message_id),
                Said("assistant", step.answer["message"], at),
            ).answering(request.message_id, dict(step.answer))
            after = replace(after, open=step.open, focus=step.focus or before.focus)
            try:
                await self.book.store.commit(Changes(uuid4().hex, records=[after.put()]))
            except RecordConflict:  # another message of the same chat was quicker
                before = await read_conversation(self.book.store, request.owner, request.chat_id)
                continue
            return


def _name(request: Request) -> str | None:
    """The name of what a message makes: the same message again makes nothing new."""
    if request.message_id is None:
        return None
    whole = "\x1f".join((request.owner or "", request.chat_id, request.message_id))
    return f"a-{sha256(whole.encode()).hexdigest()[:32]}"
