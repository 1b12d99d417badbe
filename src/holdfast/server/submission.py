"""From a submitted body to a call that the client can store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson

from holdfast.core.task import Json
from holdfast.definitions.call import Call
from holdfast.definitions.open import open_call
from holdfast.definitions.options import NO_OPTIONS, Options, read_options
from holdfast.definitions.registry import AnyDefinition, Registry
from holdfast.errors import (
    HoldfastError,
    InvalidArguments,
    InvalidOption,
    PayloadRefused,
    UnknownTask,
)
from holdfast.server.instants import read_instant
from holdfast.server.models.tasks import Submit
from holdfast.server.problems import Refused, field_of, located
from holdfast.server.shape import Shape, with_whole_numbers
from holdfast.settings import Settings

SUBMIT: Final = Shape(Submit, nullable=True)
ROOM: Final = 64 * 1024
"""What a task may hold beside its parameters."""
MOST_AT_ONCE: Final = 10_000
"""An array is one transaction: more than this would hold up others. A stream has no such limit."""

T = TypeVar("T")


class Submissions:
    """Makes calls of the tasks that this process knows, and of any on an open queue."""

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self._registry = registry
        self._settings = settings

    def one(self, body: Json) -> Call[Any]:
        """The call that a body describes."""
        wanted = SUBMIT.read(body)
        name, parameters = wanted["task_type"], wanted.get("parameters", {})
        named = 2 if "parameters" in wanted else 1
        options = NO_OPTIONS if len(wanted) == named else self._options(wanted)
        definition = self._registry.get(name)
        if definition is not None:
            return _known(definition, parameters, options)
        if (options.queue or "default") in self._settings.open_queues:
            return open_call(name, parameters, options)
        if not self._registry and not self._settings.open_queues:
            raise Refused(
                409,
                "no_tasks_here",
                "this server knows no task and has no open queue: start it with an app, or name "
                "queues for HTTP workers (`open_queues`)",
            )
        raise UnknownTask(name, suggestion=self._registry.suggest(name))

    def _options(self, wanted: Submit) -> Options:
        """The options in a body whose form was checked. Their words are known to `read_options`."""
        given: dict[str, Any] = {**wanted}
        del given["task_type"]
        given.pop("parameters", None)
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
        self, bodies: Sequence[Json], size: int, made: Callable[[Call[Any]], T], at: str = ""
    ) -> list[T]:
        """What is `made` of the calls of an array, which was `size` bytes long. `at` is where it
        stands in a larger body.
        """
        if not 1 <= len(bodies) <= MOST_AT_ONCE:
            raise Refused(
                422, "invalid_request", f"expected 1 to {MOST_AT_ONCE:,} tasks, got {len(bodies):,}"
            )
        many: list[T] = []
        for n, body in enumerate(bodies):
            try:
                if size > self._settings.max_payload:
                    self.refuse_large(len(orjson.dumps(body)))
                many.append(made(self.one(body)))
            except (HoldfastError, Refused) as error:
                raise located(error, f"{at}[{n}]", index=n) from None
        return many


def _known(
    definition: AnyDefinition, parameters: Mapping[str, Json], options: Options
) -> Call[Any]:
    try:
        return definition.make_json_call(parameters, options, strict=True)
    except InvalidArguments:
        whole = with_whole_numbers(parameters)
        if whole is parameters:
            raise
        return definition.make_json_call(whole, options, strict=True)
