"""From a submitted body to a call, or a composition, that the client can store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson

from holdfast.core.flow import BATCH, Body, Source, When
from holdfast.core.task import Json
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Composable, Composite, Members
from holdfast.definitions.open import open_call
from holdfast.definitions.options import NO_OPTIONS, Options, read_options
from holdfast.definitions.planning import times_of, without_times
from holdfast.definitions.references import NOTHING_LATER, ResultOf
from holdfast.definitions.registry import AnyDefinition, Registry
from holdfast.errors import (
    HoldfastError,
    InvalidArguments,
    InvalidOption,
    PayloadRefused,
    UnknownTask,
)
from holdfast.server.compositions import (
    WORDS,
    MadeLink,
    Part,
    conflict,
    is_id,
    refuse_strangers,
    results_of,
    said_of,
)
from holdfast.server.instants import read_instant
from holdfast.server.models.tasks import Child, Submit
from holdfast.server.problems import Refused, field_of, located
from holdfast.server.shape import Shape, with_whole_numbers
from holdfast.settings import Settings

SUBMIT: Final = Shape(Submit, nullable=True)
ROOM: Final = 64 * 1024
"""What a task may hold beside its parameters."""
LINKING: Final = frozenset({"after", "results", "order", "on_failure", "body"})
"""What says that a task has to do with others."""
MOST_AT_ONCE: Final = 10_000
"""An array is one transaction: more than this would hold up others. A stream has no such limit."""

T = TypeVar("T")


class Submissions:
    """Makes calls of the tasks that this process knows, and of any on an open queue."""

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self._registry = registry
        self._settings = settings

    def part(self, body: Json, *, is_large: bool = False) -> Part:
        """The call that a body describes, or the composition. Of one that `is_large` each task is
        measured.
        """
        wanted = SUBMIT.read(body)
        if "children" in wanted:
            return self._parent(wanted, is_large=is_large)
        if is_large:
            self.refuse_large(len(orjson.dumps(body)))
        if wanted.keys().isdisjoint(LINKING) and wanted["task_type"] != BATCH:
            return self._call(wanted, NOTHING_LATER)
        link = self._link(wanted)
        for name, ref in link.later.items():
            if ref.is_by_name:
                raise conflict(f"results.{name}", "names children, and there are none")
        if link.siblings:
            raise conflict("after", "expected ids: there are no other children that it could name")
        return link.made

    def _parent(self, wanted: Submit | Child, *, is_large: bool) -> Composite[Any]:
        """A task with children. When it may start is said of all of them."""
        said = said_of(wanted)
        if is_large:
            self.refuse_large(len(orjson.dumps({**wanted, "children": []})))
        members = []
        for n, child in enumerate(wanted["children"]):
            try:
                members.append(self._child(child, is_large=is_large))
            except (HoldfastError, Refused) as error:
                raise located(error, f"children[{n}]") from None
        link, chosen = None, self._options(wanted)
        if said.body is not Body.NONE:
            link = self._link(wanted, takes_children=said.body is Body.AFTER)
            chosen = times_of(chosen)
        elif wanted.get("parameters") or wanted.get("results"):
            raise conflict("parameters", f"a task of the type {BATCH!r} takes none")
        many = Members("children", members)
        return Composite(label="parent", members=many, said=said, body=link, chosen=chosen)

    def _child(self, wanted: Child, *, is_large: bool) -> Composable[Any]:
        part: Composable[Any]
        if "children" in wanted:
            part = self._parent(wanted, is_large=is_large)
        else:
            if is_large:
                self.refuse_large(len(orjson.dumps(wanted)))
            part = self._link(wanted)
        names = [each for each in wanted.get("after", ()) if not is_id(each)]
        part = part.after(*names, when=wanted.get("when", When.SUCCESS))
        return part.named(wanted["name"]) if "name" in wanted else part

    def _link(self, wanted: Submit | Child, *, takes_children: bool | None = None) -> MadeLink:
        """A task that has to do with others. None for `takes_children`: it has none."""
        if takes_children is None:
            refuse_strangers(wanted)
        later = results_of(wanted)
        definition = self._registry.get(wanted["task_type"])
        if takes_children and definition is not None:
            name = definition.missing({*wanted.get("parameters", {}), *later})
            if name is not None:
                later[name] = ResultOf(Source.CHILDREN, (), is_by_name=True)
        for name, ref in later.items():
            if ref.source is Source.CHILDREN and not takes_children:
                raise conflict(f"results.{name}", "takes the results of children that end before")
        call = self._call(wanted, later)
        if takes_children is not None:
            call = replace(call, options=without_times(call.options))
        names = [] if "children" in wanted else wanted.get("after", [])
        siblings = tuple((each, call.options.when) for each in names if not is_id(each))
        return MadeLink.of(call, refs=later, siblings=siblings)

    def call(self, wanted: Submit) -> Call[Any]:
        """The call of a task that has to do with no others, in a body whose form was checked."""
        return self._call(wanted, NOTHING_LATER)

    def _call(self, wanted: Submit | Child, later: Mapping[str, ResultOf]) -> Call[Any]:
        name, parameters = wanted["task_type"], wanted.get("parameters", {})
        named = 2 if "parameters" in wanted else 1
        options = NO_OPTIONS if len(wanted) == named else self._options(wanted)
        definition = self._registry.get(name)
        if definition is not None:
            return _known(definition, parameters, options, later)
        if (options.queue or "default") in self._settings.open_queues:
            return open_call(name, parameters, options, later)
        if not self._registry and not self._settings.open_queues:
            raise Refused(
                409,
                "no_tasks_here",
                "this server knows no task and has no open queue: start it with an app, or name "
                "queues for HTTP workers (`open_queues`)",
            )
        raise UnknownTask(name, suggestion=self._registry.suggest(name))

    def _options(self, wanted: Submit | Child) -> Options:
        """The options in a body whose form was checked. Their words are known to `read_options`."""
        given: dict[str, Any] = {name: each for name, each in wanted.items() if name not in WORDS}
        if "after" in given:
            given["after"] = [each for each in given["after"] if is_id(each)]
            if not given["after"] and len(wanted["after"]) > 0:
                given.pop("when", None)
        for word in given.keys() & {"run_at", "expires_at"}:
            given[word] = read_instant(word, given[word])
        if "retry" in given:
            words = {word.removesuffix("_seconds"): each for word, each in given["retry"].items()}
            given["retry"] = replace(self._settings.retry_policy, **words)
        try:
            return read_options(given)
        except InvalidOption as error:
            # 409, not 422: each word is well formed, only together they make no sense.
            field = field_of(error.option)
            raise Refused(409, "conflicting_options", str(error), field=field) from None

    def refuse_large(self, size: int) -> None:
        """Refuse a task that cannot be stored before it is looked at: to say all that is wrong with
        megabytes takes long.
        """
        limit = self._settings.max_payload
        if size > limit + ROOM:
            raise PayloadRefused(
                "$", f"the task is {size:,} bytes of JSON, its parameters may be {limit:,}"
            )

    def many(
        self, bodies: Sequence[Json], size: int, made: Callable[[Part], T], at: str = ""
    ) -> list[T]:
        """What is `made` of the parts of an array, which was `size` bytes long. `at` is where it
        stands in a larger body.
        """
        if not 1 <= len(bodies) <= MOST_AT_ONCE:
            raise Refused(
                422, "invalid_request", f"expected 1 to {MOST_AT_ONCE:,} tasks, got {len(bodies):,}"
            )
        many: list[T] = []
        for n, body in enumerate(bodies):
            try:
                many.append(made(self.part(body, is_large=size > self._settings.max_payload)))
            except (HoldfastError, Refused) as error:
                raise located(error, f"{at}[{n}]", index=n) from None
        return many


def _known(
    definition: AnyDefinition,
    parameters: Mapping[str, Json],
    options: Options,
    later: Mapping[str, ResultOf],
) -> Call[Any]:
    for name in later:
        if name in parameters or name not in definition.parameters:
            why = "is in `parameters` too" if name in parameters else "is no parameter of this task"
            raise conflict(f"results.{name}", why)
    try:
        return definition.make_json_call(parameters, options, strict=True, later=later)
    except InvalidArguments:
        whole = with_whole_numbers(parameters)
        if whole is parameters:
            raise
        return definition.make_json_call(whole, options, strict=True, later=later)
