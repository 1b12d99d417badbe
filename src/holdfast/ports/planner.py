"""Who reads a request in plain words and says what is to be scheduled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

Role = Literal["user", "assistant"]
By = Literal["offline", "llm", "llm+offline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something said earlier in the conversation. What a run produced is none of it."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """One request of one user, with what is needed to understand it.

    `tasks` are the user's own, as `parse` takes them (id, title, status, dtstart, rrule, tz …), and
    `focus` is the id of the one last talked about. There is no owner in here, no address and no
    limit: a planner cannot change what it is not told.
    """

    text: str
    now: datetime
    tz: str
    history: tuple[Message, ...] = ()
    tasks: tuple[Mapping[str, Any], ...] = ()
    focus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """What asking a model took, whether or not its answer was of use."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a planner understood.

    Attributes:
        result: The mapping that `parse` returns: kind, schedule or refusal.
        planner: Whose reading `result` is; both names where both gave the same runs.
        agreed: Whether it may be carried out at once. If not, show `result` and let the user
            confirm it: the planners differ, or one of them alone understood the request.
        alternative: The other reading where they differ, for the question.
        title: A title that the model proposes, made of the user's words; None for none.
        category: The category that the model proposes; None for none.
        notes: Why the model was not believed or not asked, as short codes for the log and the
            record (`deadline`, `truncated`, `rate_limited` …); never text of its answer.
        usage: What the model took.
    """

    result: Mapping[str, Any]
    planner: By = "offline"
    agreed: bool = True
    alternative: Mapping[str, Any] | None = None
    title: str | None = None
    category: str | None = None
    notes: tuple[str, ...] = ()
    usage: ModelUse = ModelUse()


class Planner(Protocol):
    """Turns words into a schedule, an update or a refusal."""

    async def plan(self, request: PlanRequest) -> Planned:
        """Understand one request.

        Never raises for anything in the request or in what a model answers: what cannot be
        understood is a refusal with fields and a reason. One request yields one reading, so it can
        become one task at most. Nothing is stored.
        """
        ...
