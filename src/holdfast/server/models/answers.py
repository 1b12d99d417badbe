"""What is answered beside tasks, queues, workers and tokens (`core.task_answers`,
`core.store_answers`), for the description of the API. Nothing is validated with these: the tests do
that, with every answer that they get.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from holdfast.core.task_answers import Count

EXACT = ConfigDict(extra="forbid")


@with_config(ConfigDict(extra="allow"))
class Problem(TypedDict):
    """What went wrong (RFC 9457). `code` is stable; `id` finds it in the server's log."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    id: str
    field: NotRequired[str]
    errors: NotRequired[list[FieldProblem]]


class FieldProblem(TypedDict):
    """One of several things that are wrong with a request."""

    field: str
    message: str


@with_config(EXACT)
class Health(TypedDict):
    """The process answers."""

    status: Literal["ok"]


@with_config(EXACT)
class Readiness(TypedDict):
    """Whether requests can be served (`ready`), and all that is missing from a whole service."""

    ready: bool
    missing: list[str]
    store: Literal["ok", "unavailable", "schema_mismatch"]
    schema_version: int | None
    dispatcher: str | None
    workers_alive: Count
