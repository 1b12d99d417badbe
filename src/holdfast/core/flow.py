"""Flow: what a task has to do with other tasks, said in its payload.

A payload says it in one more key that no parameter can have, as it does with secrets (`shown`):

    {"user": 7, "$flow": {"after": [["<id>", "success"]], "results": {"total": ["one", "<id>"]}}}

So stores know nothing of it, and whoever starts a task (`engine.starting`) sees with one look
whether there is anything to do first. What a flow waits for are gates: a task stands behind the own
latch of each task that it comes after, and a parent behind the latch that its children count down.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.core.shown import FLOW
from holdfast.core.task import Json, TaskId

IN_PAYLOAD: Final = f'"{FLOW}"'.encode()
"""What the payload of a task with a flow has in it somewhere: cheap to look for."""

BATCH: Final = "holdfast.batch"
"""The name of a parent that has no body: whoever claims it ends it."""

DEEPEST: Final = 64
"""Levels of children below children."""


class When(StrEnum):
    """How what a task comes after must have ended for it to run."""

    SUCCESS = "success"
    FAILURE = "failure"
    ALWAYS = "always"


class OnFailure(StrEnum):
    """What becomes of a parent and of its other children when a child does not complete."""

    FAIL_PARENT = "fail_parent"  # the others run; the parent fails when all have ended
    CONTINUE = "continue"  # the others run; the parent completes all the same
    CANCEL_REST = "cancel_rest"  # those that have not ended are cancelled, and the parent fails


class ChildOrder(StrEnum):
    """Whether children run one after another."""

    SEQUENCE = "sequence"
    PARALLEL = "parallel"


class Body(StrEnum):
    """When the handler of a parent runs, if it has one."""

    BEFORE = "before"
    AFTER = "after"
    NONE = "none"


class ParentResult(StrEnum):
    """What the result of a parent without a body is: its children's, or that of the last."""

    ALL = "all"
    LAST = "last"


class Dependency(NamedTuple):
    """A task that must have ended before this one starts."""

    task_id: TaskId
    when: When = When.SUCCESS


class Source(StrEnum):
    """Whose result a parameter is given."""

    ONE = "one"  # one task's
    EACH = "each"  # those of several tasks, as a list
    CHILDREN = "children"  # those of all children of one task, as a list, oldest first


class ResultRef(NamedTuple):
    """Where the value of a parameter comes from once that has ended. Of a parent without a body
    ONE is the result that `ParentResult` says.
    """

    source: Source
    task_ids: tuple[TaskId, ...]


class Children(NamedTuple):
    """What a parent says of its children."""

    body: Body = Body.NONE
    order: ChildOrder = ChildOrder.PARALLEL
    on_failure: OnFailure = OnFailure.FAIL_PARENT
    result: ParentResult = ParentResult.ALL


class ScheduledRun(NamedTuple):
    """Why a schedule submitted a task: for which of its runs (an instant, ISO 8601), and how that
    came about.
    """

    schedule: str
    version: int
    at: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """All that a payload says of other tasks. `results` are by parameter. `rest_of` is the parent
    whose other children are cancelled when one does not complete. `body_of` is the parent whose
    body must have returned first. `debounce` is the key of which only the newest task may run.
    `run` is of tasks that a schedule submitted.
    """

    after: tuple[Dependency, ...] = ()
    results: Mapping[str, ResultRef] = field(default_factory=dict)
    children: Children | None = None
    rest_of: TaskId | None = None
    body_of: TaskId | None = None
    debounce: str | None = None
    run: ScheduledRun | None = None


def children_latch(parent_id: TaskId) -> str:
    """The key of the latch that a parent's children count down."""
    return f"{parent_id}.children"


def body_latch(parent_id: TaskId) -> str:
    """The key of the latch that children stand behind whose parent's body runs first. The commit
    that stores them counts it up by one. The parent names it in its `counts`, so its end opens it
    in any case; the return of its body opens it before.
    """
    return f"{parent_id}.body"


def with_flow(payload: bytes, flow: Flow) -> bytes:
    """The payload with what it says of other tasks."""
    said: dict[str, Json] = {}
    if flow.after:
        said["after"] = [list(each) for each in flow.after]
    if flow.results:
        said["results"] = {name: [r.source, *r.task_ids] for name, r in flow.results.items()}
    if flow.children is not None:
        said["children"] = list(flow.children)
    if flow.rest_of is not None:
        said["rest_of"] = flow.rest_of
    if flow.body_of is not None:
        said["body_of"] = flow.body_of
    if flow.debounce is not None:
        said["debounce"] = flow.debounce
    if flow.run is not None:
        said["run"] = list(flow.run)
    return payload if not said else _encoded({**json.loads(payload), FLOW: said})


def flow_of(payload: bytes) -> Flow | None:
    """What a payload says of other tasks; None for nearly all."""
    if IN_PAYLOAD not in payload:
        return None
    try:
        value = json.loads(payload)
    except ValueError:
        return None
    said = value.get(FLOW) if isinstance(value, dict) else None
    if not isinstance(said, dict):
        return None
    children, run = said.get("children"), said.get("run")
    return Flow(
        after=tuple(Dependency(TaskId(one), When(when)) for one, when in said.get("after", ())),
        results={
            name: ResultRef(Source(source), tuple(map(TaskId, ids)))
            for name, (source, *ids) in said.get("results", {}).items()
        },
        children=None if children is None else _children(*children),
        rest_of=said.get("rest_of"),
        body_of=said.get("body_of"),
        debounce=said.get("debounce"),
        run=None if run is None else ScheduledRun(*run),
    )


def with_values(payload: bytes, values: Mapping[str, Json]) -> bytes:
    """The payload with these arguments too; what it says of other tasks stays."""
    return _encoded({**json.loads(payload), **values}) if values else payload


def without_flow(payload: bytes, values: Mapping[str, Json]) -> bytes:
    """The payload as others see it: with these values, and without what it says of other tasks."""
    arguments = json.loads(payload)
    arguments.pop(FLOW, None)
    return _encoded({**arguments, **values})


def _children(body: str, order: str, on_failure: str, result: str) -> Children:
    return Children(Body(body), ChildOrder(order), OnFailure(on_failure), ParentResult(result))


def _encoded(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
