"""The planner that asks a language model, and the grammar too.

One request takes one call as a rule. An answer that cannot be used is sent back with what is wrong
with it, twice at most; whatever the endpoint does, the whole ends by the deadline, and then the
grammar's answer stands as if there were no model. Nothing that the model says is carried out
because it said it: its slots go through the same compiler as the grammar's, and `agreeing` decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holdfast.assistant.llm.agreeing import is_open, joined
from holdfast.assistant.llm.answers import Answer, Unusable, read_answer
from holdfast.assistant.llm.compiling import compiled
from holdfast.assistant.llm.endpoint import (
    STYLES,
    Completion,
    Connection,
    Endpoint,
    NoAnswer,
    Style,
)
from holdfast.assistant.llm.prompt import correction, first_messages
from holdfast.assistant.llm.schema import compact_schema, complete_schema
from holdfast.logs import EventLog
from holdfast.ports.planner import ModelUse, Planned, Planner, PlanRequest
from holdfast.settings import Settings

MOST_CORRECTIONS: Final = 2
LONGEST_TEXT: Final = 2_000
"""Characters of a request that a model is asked about; the grammar reads longer ones alone."""

log = EventLog("holdfast.assistant")


@dataclass(slots=True)
class _Asking:
    """What one request took so far."""

    deadline: float
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    notes: list[str] = field(default_factory=list)

    def count(self, completion: Completion) -> None:
        self.tokens_in += completion.tokens_in
        self.tokens_out += completion.tokens_out

    @property
    def usage(self) -> ModelUse:
        return ModelUse(calls=self.calls, tokens_in=self.tokens_in, tokens_out=self.tokens_out)


class LLMPlanner:
    """Reads requests with a model and with `offline`, and compares."""

    def __init__(self, settings: Settings, offline: Planner) -> None:
        self._endpoint = Endpoint.of(settings)
        self._offline = offline
        self._style: Style = STYLES[0]

    async def plan(self, request: PlanRequest) -> Planned:
        """As the port promises; see `Planned` for what agreement means.

        The model is not asked about what the grammar refuses for a reason of its own.
        """
        offline = await self._offline.plan(request)
        if len(request.text) > LONGEST_TEXT or not is_open(offline.result):
            return replace(offline, notes=(*offline.notes, "model_not_asked"))
        asking = _Asking(asyncio.get_running_loop().time() + self._endpoint.timeout)
        reading = await self._reading(request, asking)
        planned = offline if reading is None else joined(offline, *reading, request.now)
        log.info(
            "planner.asked",
            planner=planned.planner,
            agreed=planned.agreed,
            notes=asking.notes,
            calls=asking.calls,
            tokens_in=asking.tokens_in,
            tokens_out=asking.tokens_out,
        )
        return replace(planned, notes=(*offline.notes, *asking.notes), usage=asking.usage)

    async def _reading(
        self, request: PlanRequest, asking: _Asking
    ) -> tuple[Mapping[str, Any], Answer] | None:
        """What the model read, compiled; None, with a note why, if it gave nothing to work with."""
        try:
            async with self._endpoint.connect() as connection:
                return await self._ask(connection, request, asking)
        except NoAnswer as failed:
            asking.notes.append(failed.reason)
            return None

    async def _ask(
        self, connection: Connection, request: PlanRequest, asking: _Asking
    ) -> tuple[Mapping[str, Any], Answer] | None:
        told: list[dict[str, str]] = []
        for _ in range(1 + MOST_CORRECTIONS):
            completion = await self._complete(connection, request, told, asking)
            asking.count(completion)
            if completion.flaw is not None:
                raise NoAnswer(completion.flaw)
            try:
                answer = read_answer(completion.text, request.text)
                return compiled(answer.slots, request), answer
            except Unusable as unusable:
                asking.notes.append("invalid")
                told += correction(completion.text, unusable.problems)
        return None

    async def _complete(
        self,
        connection: Connection,
        request: PlanRequest,
        told: list[dict[str, str]],
        asking: _Asking,
    ) -> Completion:
        """One answer, asked for in the first style that the endpoint takes; which one that is, is
        remembered.
        """
        for style in STYLES[STYLES.index(self._style) :]:
            asking.calls += 1
            schema = complete_schema() if style == "complete" else compact_schema()
            written = schema if style == "object" else None
            try:
                completion = await connection.complete(
                    [*first_messages(request, written), *told],
                    schema=schema,
                    style=style,
                    deadline=asking.deadline,
                )
            except NoAnswer as failed:
                if failed.unsupported and style != STYLES[-1]:
                    continue
                raise
            self._style = style
            return completion
        raise AssertionError("the last style returns or raises")
