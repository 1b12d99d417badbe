"""From a body with children to a composition: the same tree, its calls made and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holdfast.core.flow import BATCH, Body, ChildOrder, Children, OnFailure, Source
from holdfast.core.ids import is_task_id
from holdfast.core.task import Json
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Composable, Composite, Link, Members
from holdfast.definitions.planning import BODYLESS
from holdfast.definitions.references import ResultOf
from holdfast.errors import InvalidOption
from holdfast.server.models.tasks import TaskToBe
from holdfast.server.problems import Refused, field_of

OWN_CHILDREN: Final = "children"
"""In `results`: the list of the results of the task's own children."""
SHAPE: Final = ("order", "on_failure", "body")
"""What only a parent says."""
WORDS: Final = frozenset({"task_type", "parameters", "children", "results", "name", *SHAPE})
"""Members that are no options."""

Part = Call[Any] | Composable[Any]
"""A task alone, or one that has to do with others of the same body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeLink(Link[Any]):
    """A link whose call is made: nothing is missing."""

    made: Call[Any]
    refs: Mapping[str, ResultOf] = field(default_factory=dict)

    @classmethod
    def of(cls, call: Call[Any], **said: Any) -> MadeLink:
        return cls(definition=call.definition, chosen=call.options, made=call, **said)

    @property
    def later(self) -> Mapping[str, ResultOf]:
        return self.refs

    def missing(self) -> str | None:
        return None

    def call(self, _: Mapping[str, ResultOf]) -> Call[Any]:
        return replace(self.made, options=self.chosen)

    def bounded(self, bound: Callable[[Call[Any]], Call[Any]]) -> MadeLink:
        call = bound(self.made)
        return replace(self, made=call, chosen=call.options)


def bounded(part: Part, bound: Callable[[Call[Any]], Call[Any]]) -> Part:
    """The part with every call of it as somebody may make it."""
    if isinstance(part, Call):
        return bound(part)
    if isinstance(part, MadeLink):
        return part.bounded(bound)
    assert isinstance(part, Composite)
    members = Members("children", [bounded(each, bound) for each in part.members])
    if isinstance(part.body, MadeLink):
        return replace(part, body=part.body.bounded(bound), members=members)
    chosen = bound(Call(BODYLESS, b"{}", part.chosen, None, None, None)).options
    return replace(part, chosen=chosen, members=members)


def calls_of(part: Part) -> Iterator[Call[Any]]:
    """All calls of it but those of parents that only wait."""
    if isinstance(part, Call):
        yield part
    elif isinstance(part, MadeLink):
        yield part.made
    elif isinstance(part, Composite):
        if isinstance(part.body, MadeLink):
            yield part.body.made
        for each in part.members:
            yield from calls_of(each)


def trace_of(part: Part) -> str | None:
    """The trace that its outermost task names."""
    if isinstance(part, Composite) and part.body is None:
        return part.chosen.traceparent
    return next(calls_of(part)).options.traceparent


def as_composable(part: Part) -> Composable[Any]:
    return MadeLink.of(part) if isinstance(part, Call) else part


def said_of(wanted: TaskToBe) -> Children:
    """What a parent says of its children."""
    is_bodyless = wanted["task_type"] == BATCH
    body = Body(wanted.get("body") or (Body.NONE if is_bodyless else Body.AFTER))
    if is_bodyless is not (body is Body.NONE):
        raise conflict(
            "body",
            f"a parent of the task type {BATCH!r} has no task to run; leave `body` out"
            if is_bodyless
            else f"a parent that only waits for its children has the task type {BATCH!r}",
        )
    return Children(
        body,
        ChildOrder(wanted.get("order", ChildOrder.PARALLEL)),
        OnFailure(wanted.get("on_failure", OnFailure.FAIL_PARENT)),
    )


def results_of(wanted: TaskToBe) -> dict[str, ResultOf]:
    """The parameters that are results of other tasks."""
    return {name: _result(name, ref) for name, ref in wanted.get("results", {}).items()}


def _result(name: str, given: str | list[str]) -> ResultOf:
    if given == OWN_CHILDREN:
        return ResultOf(Source.CHILDREN, (), is_by_name=True)
    many = [given] if isinstance(given, str) else given
    ids = [is_id(each) for each in many]
    if any(ids) and not all(ids):
        raise conflict(f"results.{name}", "names children and ids; give one or the other")
    source = Source.ONE if isinstance(given, str) else Source.EACH
    targets = [each.lower() for each in many] if all(ids) else many
    return ResultOf(source, targets, is_by_name=not all(ids))


def refuse_strangers(wanted: Mapping[str, Json]) -> None:
    """Refuse what only a parent can say of one that is none."""
    for word in SHAPE:
        if word in wanted:
            raise conflict(word, "is said of children, and there are none")
    if wanted["task_type"] == BATCH:
        raise conflict("children", f"a task of the type {BATCH!r} only waits for its children")


def is_id(word: str) -> bool:
    """Whether a word is the id of a task, and not the name of a child."""
    return is_task_id(word.lower())


def refusal_of_links(error: InvalidOption) -> Refused:
    """What is wrong with how tasks belong together. A `name` is a child's here."""
    field = error.option if error.option == "name" else field_of(error.option)
    return Refused(409, "conflicting_options", str(error), field=field)


def conflict(field: str | None, says: str) -> Refused:
    """409, not 422: each word is well formed, only together they make no sense."""
    return Refused(409, "conflicting_options", f"{field}: {says}", field=field)
