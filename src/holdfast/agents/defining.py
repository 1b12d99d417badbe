"""`@app.agent`: from a function that takes an `AgentRun` to a task's definition.

The task's parameters are JSON (`Asked`), so a worker in any language can serve it as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, Unpack, overload

from holdfast.agents.conversation import ContextReader, Message, RecordedConversations
from holdfast.agents.run import AgentResult, AgentRun, Asked
from holdfast.core.task import Json
from holdfast.definitions.context import Context
from holdfast.definitions.define import define
from holdfast.definitions.definition import Definition
from holdfast.definitions.home import Home
from holdfast.definitions.options import TaskKeywords
from holdfast.errors import InvalidOption

Returned = AgentResult | str | dict[str, Any]
R = TypeVar("R", bound=Returned)
Handler = Callable[[AgentRun], Returned | Coroutine[Any, Any, Returned]]
AgentDefinition = Definition[..., dict[str, Any], Any]

MESSAGES: Final = 20
"""Messages of the chat that an agent is given, unless it says otherwise."""


class AgentDecorator:
    """Make a function an agent: `@app.agent` or `@app.agent(name="assistant", timeout="10m", …)`.

    It takes an `AgentRun` and returns text, an `AgentResult`, or a mapping with `content`; see
    `TaskKeywords` for the options of its task. With `default` the assistant gives it what people
    ask for; else the first agent that is defined.
    """

    def __init__(
        self,
        home: Home,
        /,
        *,
        default: bool = False,
        context: ContextReader | None = None,
        messages: int = MESSAGES,
        **options: Unpack[TaskKeywords],
    ) -> None:
        if messages < 0:
            raise InvalidOption("messages", f"expected a number from 0, got {messages!r}")
        self._home = home
        self._is_default = default
        self._reader = context or RecordedConversations()
        self._messages = messages
        self._options = options

    @overload
    def __call__(
        self, function: Callable[[AgentRun], Coroutine[Any, Any, R]], /
    ) -> AgentDefinition: ...
    @overload
    def __call__(self, function: Callable[[AgentRun], R], /) -> AgentDefinition: ...
    @overload
    def __call__(
        self,
        *,
        default: bool = False,
        context: ContextReader | None = None,
        messages: int = MESSAGES,
        **options: Unpack[TaskKeywords],
    ) -> AgentDecorator: ...

    def __call__(self, *function: Any, **options: Any) -> Any:
        if not function:
            return AgentDecorator(self._home, **options)
        handler = self._handler(function[0])
        definition = define(handler, self._home, dict(self._options))
        registry = self._home.registry
        if self._is_default or registry.default_agent is None:
            registry.default_agent = definition.name
        return definition

    def _handler(self, function: Handler) -> Callable[..., Any]:
        _refuse_unless_an_agent(function)
        made = self._async(function) if inspect.iscoroutinefunction(function) else None
        handler = made or self._sync(function)
        for name in ("__module__", "__qualname__", "__name__", "__doc__"):
            setattr(handler, name, getattr(function, name))
        return handler

    def _async(self, function: Any) -> Callable[..., Any]:
        async def agent(
            ctx: Context,
            purpose: str = "",
            title: str | None = None,
            chat_id: str | None = None,
            message_id: str | None = None,
            timezone: str = "UTC",
            language: str | None = None,
        ) -> dict[str, Any]:
            asked = _asked(purpose, title, chat_id, message_id, timezone, language)
            run = AgentRun(ctx, asked, await self._said(ctx, asked))
            return run.result(await function(run))

        return agent

    def _sync(self, function: Any) -> Callable[..., Any]:
        def agent(
            ctx: Context,
            purpose: str = "",
            title: str | None = None,
            chat_id: str | None = None,
            message_id: str | None = None,
            timezone: str = "UTC",
            language: str | None = None,
        ) -> dict[str, Any]:
            asked = _asked(purpose, title, chat_id, message_id, timezone, language)
            said: list[Message] = []
            if self._reads(asked):
                said = self._home.wait_for(self._said(ctx, asked))
            run = AgentRun(ctx, asked, said)
            return run.result(function(run))

        return agent

    def _reads(self, asked: Asked) -> bool:
        return asked.chat_id is not None and self._messages > 0

    async def _said(self, ctx: Context, asked: Asked) -> list[Message]:
        if asked.chat_id is None or not self._reads(asked):
            return []
        store = (await self._home.verbs()).store
        return list(await self._reader.read(store, ctx.owner, asked.chat_id, self._messages))


def agent_arguments(
    purpose: str,
    *,
    title: str | None = None,
    chat_id: str | None = None,
    message_id: str | None = None,
    timezone: str = "UTC",
    language: str | None = None,
) -> dict[str, Json]:
    """The arguments of an agent's task, as JSON."""
    given = {
        "purpose": purpose,
        "title": title,
        "chat_id": chat_id,
        "message_id": message_id,
        "timezone": timezone,
        "language": language,
    }
    return {name: value for name, value in given.items() if value is not None}


def _asked(
    purpose: str,
    title: str | None,
    chat_id: str | None,
    message_id: str | None,
    timezone: str,
    language: str | None,
) -> Asked:
    return Asked(
        purpose=purpose,
        title=title,
        chat_id=chat_id,
        message_id=message_id,
        timezone=timezone,
        language=language,
    )


def _refuse_unless_an_agent(function: Any) -> None:
    if isinstance(function, Definition):
        raise InvalidOption("agent", f"{function.name} is a task already; decorate it once")
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise InvalidOption("agent", f"expected a function, got {function!r}")
    parameters = list(inspect.signature(function).parameters.values())
    required = [each for each in parameters[1:] if each.default is inspect.Parameter.empty]
    if not parameters or required:
        raise InvalidOption(
            "agent",
            f"{function.__qualname__} must take one AgentRun: what it is asked to do is in that",
        )
