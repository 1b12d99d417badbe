"""What a token reaches of the assistant: whose tasks it makes, and whether it may at all."""

from __future__ import annotations

from holdfast.assistant.assistant import NO_AGENT, Assistant
from holdfast.core.token import Token
from holdfast.server.problems import Refused
from holdfast.server.service import Service


async def reached(
    service: Service, token: Token, asked: str | None
) -> tuple[Assistant, str | None]:
    """The assistant, and the owner it speaks for: the one that was asked for, as far as the token
    is bound to none. `Refused` if it may not be asked at all.
    """
    owner = _owner(token, asked)
    assistant = await service.assistant()
    _refuse_others(token, assistant)
    return assistant, owner


def _owner(token: Token, asked: str | None) -> str | None:
    """Whose tasks these are: a bound token speaks for its owner only."""
    mine = token.bounds.owner
    if mine is not None and asked not in (None, mine):
        raise Refused(
            403, "out_of_bounds", "this token is bound: it speaks for its own owner only",
            field="owner",
        )  # fmt: skip
    return mine or asked


def _refuse_others(token: Token, assistant: Assistant) -> None:
    """409 if nobody would run what the assistant makes, 403 if the token may not submit it."""
    names, queues = token.bounds.names, token.bounds.queues
    agent = assistant.agent
    if agent is None:
        raise Refused(409, "no_agent", NO_AGENT)
    definition = assistant.book.registry.get(agent)
    queue = None if definition is None else definition.queue
    if (names is not None and agent not in names) or (queues is not None and queue not in queues):
        raise Refused(
            403, "out_of_bounds", "this token is bound: it may not submit the assistant's tasks"
        )
