"""From a worker's words to an `Outcome`, and to what the task becomes.

`core.lifecycle.settle` decides, as for workers in Python. The backoff is the task's own, else that
of its definition, else the settings': a type that this server does not define is retried too.
"""

from __future__ import annotations

import random
from collections.abc import Collection

import orjson

from holdfast.announcing import Gate, announce
from holdfast.codec.hiding import marked_secrets, without
from holdfast.codec.text import MESSAGE_LIMIT, TRACEBACK_LIMIT, storable
from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import (
    Backoff,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    settle,
)
from holdfast.core.payload import check_size, check_value
from holdfast.core.task import AttemptEnd, Json, State, TaskError
from holdfast.definitions.backoff import backoff_for
from holdfast.definitions.registry import AnyDefinition, Registry
from holdfast.errors import AttemptTimeout
from holdfast.logs import EventLog
from holdfast.remote.values import RemoteResult, ResultStatus
from holdfast.settings import Settings

log = EventLog("holdfast.remote")

ENDS: dict[ResultStatus, frozenset[AttemptEnd]] = {
    ResultStatus.COMPLETED: frozenset({AttemptEnd.COMPLETED}),
    ResultStatus.FAILED: frozenset({AttemptEnd.ERROR}),
    ResultStatus.RELEASED: frozenset({AttemptEnd.RELEASED, AttemptEnd.CANCELLED}),
}
"""How an attempt may stand in the history if this is a repeat of what was said before."""


class Judge:
    """Knows the rules of one app."""

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self._registry = registry
        self._settings = settings
        self._policy = settings.retry_policy
        self._gate = Gate(log)

    def outcome(self, result: RemoteResult, claim: Claim) -> Outcome:
        """What the worker says. `PayloadRefused` for a result that no store may hold."""
        match result.status:
            case ResultStatus.COMPLETED:
                return Succeeded(encoded(result.result, self._settings.max_result))
            case ResultStatus.FAILED:
                error = _storable(result.error, self._secrets_of(claim))
                return Failed(error, retry_after=result.retry_after)
            case ResultStatus.RELEASED:
                return Stopped() if claim.cancel_requested else Released()

    def settle(self, claim: Claim, outcome: Outcome) -> Settlement:
        """What the task becomes."""
        limit = self._settings.crash_limit
        settlement = settle(claim, outcome, backoff=self._backoff(claim), crash_limit=limit)
        if settlement.state is not State.COMPLETED:
            announce(log, claim, settlement)
        elif self._gate.is_open():
            self._gate.completed(claim)
        return settlement

    def timeout_of(self, claim: Claim) -> float | None:
        """The time limit of this attempt."""
        definition: AnyDefinition | None = self._registry.get(claim.name)
        return claim.timeout if definition is None else definition.timeout_of(claim)

    def out_of_time(self, claim: Claim) -> Outcome:
        """It outlived its timeout, and nobody here can stop it."""
        timeout = self.timeout_of(claim)
        limit = "its timeout" if timeout is None else f"its timeout of {timeout:g} s"
        return TimedOut(
            TaskError(
                type=AttemptTimeout.__qualname__,
                message=f"the attempt ran longer than {limit}; worker {claim.worker_id} had not "
                "said how it ended, and what it says later does not count",
            )
        )

    def _secrets_of(self, claim: Claim) -> frozenset[str]:
        definition: AnyDefinition | None = self._registry.get(claim.name)
        if definition is None:
            return marked_secrets(claim.payload)
        return definition.secrets_in(claim.payload)

    def _backoff(self, claim: Claim) -> Backoff:
        definition: AnyDefinition | None = self._registry.get(claim.name)
        if definition is None:
            return backoff_for(claim.name, claim.retry, None, random.random, self._policy)
        return definition.backoff(claim, random.random, self._policy)


def encoded(value: Json, limit: int) -> bytes:
    """A result as it is stored; the rules are those of payloads."""
    check_value(value, "result")
    result = orjson.dumps(value)
    check_size(result, limit, what="result")
    return result


def _storable(error: TaskError | None, secrets: Collection[str]) -> TaskError:
    """Whatever went wrong must be told, so its text is mended rather than refused. The task's own
    secrets are stars in it.
    """
    if error is None:
        return TaskError(type="Error", message="the worker did not say what went wrong")
    trace = error.traceback
    return TaskError(
        type=storable(without(error.type, secrets), 200),
        message=storable(without(error.message, secrets), MESSAGE_LIMIT),
        traceback=None if trace is None else storable(without(trace, secrets), TRACEBACK_LIMIT),
        retriable=error.retriable,
    )
