"""The rules of an app for one attempt: its time limit, its wait before a retry, its secrets, and
what its outcome makes of the task.

`core.lifecycle.settle` decides. The backoff is the task's own, else that of its definition, else
the settings': a task that this process does not define is retried too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Never
from uuid import uuid4

from holdfast.codec.hiding import marked_secrets, without
from holdfast.codec.text import MESSAGE_LIMIT, TRACEBACK_LIMIT, storable
from holdfast.core.attempt import Claim, Refusal, Settlement
from holdfast.core.chore import with_chores
from holdfast.core.lifecycle import Failed, Outcome, Succeeded, TimedOut, settle
from holdfast.core.record import Changes
from holdfast.core.task import NewTask, TaskError
from holdfast.definitions.backoff import backoff_for
from holdfast.definitions.registry import AnyDefinition
from holdfast.errors import AttemptTimeout
from holdfast.settings import Settings


class Judge:
    """Knows the rules of one app. `draw` is the jitter of retries, from 0 to 1."""

    def __init__(
        self,
        definitions: Mapping[str, AnyDefinition],
        settings: Settings,
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._definitions = definitions
        self._policy = settings.retry_policy
        self._crash_limit = settings.crash_limit
        self._draw = draw

    def settle(self, claim: Claim, outcome: Outcome) -> Settlement:
        """What the task becomes now that its attempt has ended thus."""
        backoff = partial(self._delay, claim)
        settlement = settle(claim, outcome, backoff=backoff, crash_limit=self._crash_limit)
        return with_chores(settlement, claim.payload)

    def timeout_of(self, claim: Claim) -> float | None:
        """How many seconds the attempt may take, if there is a limit."""
        definition = self._definitions.get(claim.name)
        return claim.timeout if definition is None else definition.timeout_of(claim)

    def secrets_of(self, claim: Claim) -> frozenset[str]:
        """What must not be read in the task's errors."""
        definition = self._definitions.get(claim.name)
        if definition is None:
            return marked_secrets(claim.payload)
        return definition.secrets_in(claim.payload)

    def _delay(self, claim: Claim, n: int) -> float:
        definition = self._definitions.get(claim.name)
        defined = None if definition is None else definition.retry
        return backoff_for(claim.name, claim.retry, defined, self._draw, self._policy)(n)


def out_of_time(timeout: float | None, what_then: str, traceback: str | None = None) -> TimedOut:
    """The attempt outlived its time limit."""
    limit = "its timeout" if timeout is None else f"its timeout of {timeout:g} s"
    message = f"the attempt ran longer than {limit}{what_then}"
    return TimedOut(
        TaskError(type=AttemptTimeout.__qualname__, message=message, traceback=traceback)
    )


def bringing(outcome: Outcome, follow_ups: Sequence[NewTask], window: float) -> Outcome:
    """The same outcome, with what is to be submitted along with it if it is a success."""
    if not isinstance(outcome, Succeeded):
        return outcome
    also = outcome.also or Changes(uuid4().hex, (), (), window)
    return replace(outcome, also=also._replace(tasks=(*also.tasks, *follow_ups)))


def refused_follow_up(refusal: Refusal) -> Failed:
    """What an attempt submitted with its success cannot be stored, and never will be."""
    said = refusal.conflict or ""
    return Failed(TaskError(type="FollowUpRefused", message=said, retriable=False))


def storable_error(error: TaskError, secrets: Collection[str] = ()) -> TaskError:
    """Whatever went wrong must be told, so its text is mended rather than refused: no NUL, no lone
    surrogate, bounded in length. The task's own secrets are stars in it, before anything is cut.
    """
    trace = error.traceback
    return TaskError(
        type=error.type,
        message=storable(without(error.message, secrets), MESSAGE_LIMIT),
        traceback=None if trace is None else storable(without(trace, secrets), TRACEBACK_LIMIT),
        retriable=error.retriable,
    )


def no_retry(_n: int) -> Never:
    """The backoff of a task that has succeeded."""
    raise AssertionError("this task has ended; there is no next attempt to wait for")
