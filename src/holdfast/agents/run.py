"""What an agent's handler is given, and what it returns.

    @app.agent
    async def assistant(run: AgentRun) -> AgentResult:
        run.progress("Reading your inbox")
        answer = await run.step("answer", ask_the_model, run.purpose)
        return AgentResult(content=answer)

A step is recorded together with what was used in it and said of it. So when a run is killed, the
next attempt has from its steps what they came to, and what they cost, without paying again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, ParamSpec, TypeVar, overload

import orjson

from holdfast.agents.conversation import Message
from holdfast.core.execution import SAYS
from holdfast.core.report import MOST_UNITS, read_cost
from holdfast.core.task import Json
from holdfast.core.usage import Usage, usage_in
from holdfast.definitions.context import Context
from holdfast.definitions.step_codec import codec_of
from holdfast.errors import Fatal, InvalidOption

P = ParamSpec("P")
R = TypeVar("R")

MOST_STEPS: Final = 200
"""Progress steps that are kept of one run."""
LARGEST: Final = 1 << 30
"""No limit of its own: the journal has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What a run came to. `usage` is what it used beyond what it has told by `run.usage()`; both
    are added up. `data` are further members of the result.
    """

    content: str
    usage: Usage = field(default_factory=Usage)
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an agent is asked to do: the arguments of its task, the same in every language."""

    purpose: str = ""
    title: str | None = None
    chat_id: str | None = None
    message_id: str | None = None
    timezone: str = "UTC"
    language: str | None = None


@dataclass(slots=True)
class _Told:
    """What was used and said, in a step or beside them."""

    usage: Usage = field(default_factory=Usage)
    steps: list[str] = field(default_factory=list)


_inside: ContextVar[_Told | None] = ContextVar("holdfast_agent_step", default=None)
"""Of the step that runs right here: several may run at once."""


class AgentRun:
    """One attempt of a run, seen from inside its handler. What else a task may do: `run.context`
    (sleeps, waits for events, children, transactions).
    """

    def __init__(self, context: Context, asked: Asked, messages: Sequence[Message]) -> None:
        self.context = context
        self.messages = messages
        """The last messages of the chat that the run belongs to, oldest first."""
        self._asked = asked
        self._told = _Told()

    @property
    def id(self) -> str:
        """The execution's id, which is its task's."""
        return self.context.id

    @property
    def attempt(self) -> int:
        return self.context.attempt

    @property
    def owner(self) -> str | None:
        return self.context.owner

    @property
    def purpose(self) -> str:
        """What is to be done, in words."""
        return self._asked.purpose

    @property
    def title(self) -> str | None:
        return self._asked.title

    @property
    def chat_id(self) -> str | None:
        return self._asked.chat_id

    @property
    def message_id(self) -> str | None:
        """The message that asked for it."""
        return self._asked.message_id

    @property
    def timezone(self) -> str:
        """The zone of whoever asked."""
        return self._asked.timezone

    @property
    def language(self) -> str | None:
        return self._asked.language

    @property
    def scheduled_for(self) -> datetime | None:
        """When this run was meant to be; None if no schedule fired it."""
        return self.context.scheduled_for

    def progress(self, step: str) -> None:
        """Say what is being done now: "Reading your inbox". All that was said is kept with the
        execution, the first 200 of a run.
        """
        steps = (_inside.get() or self._told).steps
        if len(steps) < MOST_STEPS:
            steps.append(step)
        self.context.progress(len(self._told.steps), message=step)
        self.context.log(f"{SAYS}{step}")

    def log(self, line: str) -> None:
        """Add a line to the task's history."""
        self.context.log(line)

    def usage(
        self, units: float = 0.0, *, tokens_in: int = 0, tokens_out: int = 0, cost: float = 0.0
    ) -> None:
        """Add to what this run has used; `cost` is money. Inside a step it is recorded with that,
        and counts once however often the run is started.
        """
        money = _money(cost)
        used = read_cost(units, tokens_in, tokens_out)
        self.context.cost(used.units, tokens_in=used.tokens_in, tokens_out=used.tokens_out)
        told = _inside.get() or self._told
        told.usage += Usage(**asdict(used), cost=money)

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def step(
        self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function once in the life of this run: `await run.step("answer", ask, prompt)`.
        As `Context.step`, and what was used and said inside is recorded with it.
        """

        async def recorded() -> dict[str, Any]:
            with self._step() as inside:
                value = function(*args, **kwargs)
                if hasattr(value, "__await__"):
                    value = await value
            return _entry(name, function, value, inside)

        return self._taken(function, await self.context.step(name, recorded))

    def step_sync(
        self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """`step` for a handler that is not async."""

        def recorded() -> dict[str, Any]:
            with self._step() as inside:
                value = function(*args, **kwargs)
            return _entry(name, function, value, inside)

        result: R = self._taken(function, self.context.step_sync(name, recorded))
        return result

    @contextmanager
    def _step(self) -> Iterator[_Told]:
        """Gather what is used and said inside a step. Of one that fails it counts all the same."""
        inside = _Told()
        before = _inside.set(inside)
        try:
            yield inside
        except BaseException:
            self._told.usage += inside.usage
            raise
        finally:
            _inside.reset(before)

    def _taken(self, function: Callable[..., Any], entry: Mapping[str, Any]) -> Any:
        """What a recorded step came to; what it used counts, whichever attempt paid it."""
        self._told.usage += usage_in(entry) or Usage()
        self._told.steps += [str(each) for each in entry["steps"]]
        return codec_of(function).read(entry["value"])

    def result(self, returned: object) -> dict[str, Json]:
        """What the handler returned, as the task's result."""
        made = _read_result(returned)
        if made.usage != Usage():
            self.usage(**asdict(made.usage))
        return {
            **made.data,
            "content": made.content,
            "usage": asdict(self._told.usage),
            "steps": self._told.steps[:MOST_STEPS],
            "chat_id": self.chat_id,
            "message_id": self.message_id,
        }


def _money(cost: object) -> float:
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not 0 <= (amount := float(str(cost))) <= MOST_UNITS:
        raise InvalidOption("cost", f"expected an amount from 0, got {cost!r}")
    return amount


def _entry(name: str, function: Callable[..., Any], value: Any, told: _Told) -> dict[str, Any]:
    kept = orjson.loads(codec_of(function).dump(name, value, LARGEST))
    return {"value": kept, "usage": asdict(told.usage), "steps": told.steps}


def _read_result(returned: object) -> AgentResult:
    """A result, text, or a mapping with `content` and maybe `usage`."""
    match returned:
        case AgentResult():
            return returned
        case str():
            return AgentResult(content=returned)
        case Mapping() if isinstance(returned.get("content"), str):
            data = {
                str(name): value
                for name, value in returned.items()
                if name not in ("content", "usage")
            }
            usage = usage_in({"usage": returned.get("usage")}) or Usage()
            return AgentResult(content=returned["content"], usage=usage, data=data)
        case _:
            raise Fatal(
                "an agent must return text, an AgentResult, or a mapping with text as its "
                f"`content`, got {type(returned).__name__}"
            )
