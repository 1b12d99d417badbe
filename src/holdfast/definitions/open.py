"""Tasks whose type this process does not define: work for HTTP workers, in whatever language.

Nothing is known of their parameters but that they are a JSON object, so nothing but the rules for
every payload is checked. They require the capability `http`, which every HTTP worker has and no
Python worker: one that serves all queues must never take them and fail them as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson

from holdfast.codec import digest
from holdfast.codec.hiding import marked_secrets
from holdfast.core.fleet import HTTP
from holdfast.core.payload import check_size, check_value
from holdfast.core.shown import FLOW, MARK, masked
from holdfast.core.task import Json, Task
from holdfast.definitions.call import Call
from holdfast.definitions.definition import Definition
from holdfast.definitions.options import Executor, Options
from holdfast.definitions.readers import read_name
from holdfast.definitions.references import NOTHING_LATER, ResultOf
from holdfast.definitions.spec import Spec
from holdfast.errors import PayloadRefused


class OpenDefinition(Definition[..., Json, Json]):
    """What stands in for a definition that is elsewhere: a name, and defaults for the rest."""

    def __init__(self, name: str) -> None:
        # Not Definition's own beginning: there is no function to look at.
        self.parameters = ()
        self.is_async = False
        self.wants_context = False
        self._take(Spec(name=name, executor=Executor.THREAD, requires=frozenset({HTTP})))

    def check_limit(self, payload: bytes, limit: int) -> None:
        check_size(payload, limit)

    def masked(self, payload: bytes) -> Json:
        return masked(payload)

    def secrets_in(self, payload: bytes) -> frozenset[str]:
        return marked_secrets(payload)

    def result_of(self, task: Task) -> Json:
        return orjson.loads(task.result or b"null")

    def __repr__(self) -> str:
        return f"<open task {self.name}>"


def open_call(
    name: str,
    parameters: Mapping[str, Json],
    options: Options,
    later: Mapping[str, ResultOf] = NOTHING_LATER,
) -> Call[Any]:
    """A call of a task type that somebody else defines."""
    values = dict(parameters)
    check_value(values)
    for ours in (MARK, FLOW):
        if ours in values:
            raise PayloadRefused(ours, "is a name that Holdfast keeps for itself; use another")
    # A copy in any case: plain calls are remembered by definition, and these names are endless.
    required = None if options.requires is None else options.requires | {HTTP}
    options = replace(options, requires=required)
    fingerprint = None if options.idempotency_key is None else digest(name, values)
    return Call(
        _definition(read_name("name", name)),
        orjson.dumps(values),
        options,
        options.lock,
        options.unique_key,
        fingerprint,
        results=tuple((name, each.ref) for name, each in later.items() if not each.is_by_name),
    )


@lru_cache(maxsize=1024)
def _definition(name: str) -> OpenDefinition:
    return OpenDefinition(name)
