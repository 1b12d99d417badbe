"""A call that has not been made: checked arguments and options, ready to be submitted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

from holdfast.core.coalescing import Coalescing
from holdfast.core.flow import Dependency, Flow, with_flow
from holdfast.core.gate import Gate, GateKind, sharing
from holdfast.core.keys import stored_key
from holdfast.core.task import Added, NewTask, Priority, TaskId
from holdfast.definitions.backoff import dump_policy
from holdfast.definitions.callbacks import check_callback
from holdfast.definitions.handle import Handle
from holdfast.definitions.options import (
    NO_OPTIONS,
    Options,
    SubmitKeywords,
    in_our_words,
    read_options,
)
from holdfast.definitions.references import Results
from holdfast.errors import InvalidOption
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.definitions.definition import Definition
    from holdfast.definitions.home import Home

R_co = TypeVar("R_co", covariant=True)

_CHANGEABLE: Final = frozenset(
    {"max_retries", "owner", "priority", "queue", "requires", "retry", "tags", "timeout"}
)
_LISTED: Final = ", ".join(sorted(_CHANGEABLE))


@dataclass(frozen=True, slots=True)
class Call(Generic[R_co]):
    """One task to be. `f.call(1)` makes it, `app.submit_many([...])` submits many at once."""

    definition: Definition[..., R_co, Any]
    payload: bytes = field(repr=False)
    options: Options
    lock: str | None
    unique_key: str | None
    fingerprint: str | None
    gates: tuple[Gate, ...] = ()
    coalescing: Coalescing | None = None
    results: Results = ()

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the definition says how it is to be run."""
        return (
            self.options is NO_OPTIONS
            and self.coalescing is None
            and self.lock is None
            and self.unique_key is None
            and self.fingerprint is None
            and self.gates is self.definition.fixed_gates
            and not self.results
        )

    @property
    def waits_for(self) -> tuple[Dependency, ...]:
        """The tasks that it comes after: those that it names, and those whose results it takes."""
        taken = [task_id for _, ref in self.results for task_id in ref.task_ids]
        known = {task_id: Dependency(task_id, self.options.when) for task_id in self.options.after}
        return tuple({**known, **{each: Dependency(each) for each in taken}}.values())

    def with_options(self, **options: Unpack[SubmitKeywords]) -> Call[R_co]:
        """The same call with some options set anew, and `tags` added: for middleware. What the
        arguments decide (keys, locks) and when it starts stay the caller's.
        """
        given = in_our_words(options)
        for name in given.keys() - _CHANGEABLE:
            raise InvalidOption(
                name, f"is the caller's; of a call that is made only {_LISTED} can be changed"
            )
        read = read_options(given)
        changes = {name: getattr(read, name) for name in given}
        if "tags" in changes:
            changes["tags"] = _joined(self.options.tags, read.tags)
        return replace(self, options=replace(self.options, **changes))

    def new_task(
        self, task_id: TaskId, settings: Settings, head_starts: Mapping[Priority, int]
    ) -> NewTask:
        """Describe the task for the store: options over the definition's over the settings'."""
        definition, options = self.definition, self.options
        definition.check_limit(self.payload, settings.max_payload)
        priority = options.priority or definition.priority
        timeout, max_retries = options.timeout, options.max_retries
        if timeout is None:
            timeout = definition.timeout or settings.timeout_for(priority)
        if max_retries is None:
            max_retries = definition.max_retries
        if max_retries is None:
            max_retries = settings.retries_for(priority)
        payload = self.payload
        gates = self.gates
        if self.results or options.after:
            after = self.waits_for
            payload = with_flow(payload, Flow(after=after, results=dict(self.results)))
            gates += tuple(Gate(GateKind.LATCH, each.task_id) for each in after)
        return NewTask(
            id=task_id,
            name=definition.name,
            payload=payload,
            queue=options.queue or definition.queue,
            priority=priority,
            head_start=head_starts[priority],
            delay=options.delay,
            run_at=options.run_at,
            expires_in=options.expires_in,
            expires_at=options.expires_at,
            max_retries=max_retries,
            timeout=None if timeout == math.inf else timeout,
            retry=None if options.retry is None else dump_policy(options.retry),
            unique_key=stored_key(options.owner, self.unique_key),
            idempotency_key=stored_key(options.owner, options.idempotency_key),
            fingerprint=self.fingerprint,
            lock=self.lock,
            requires=definition.requires if options.requires is None else options.requires,
            tags=_joined(definition.tags, options.tags),
            owner=options.owner,
            trace=options.traceparent,
            callback=_callback(options, settings),
            gates=sharing(gates, head_starts[priority]),
        )


def _callback(options: Options, settings: Settings) -> str | None:
    if options.callback is None:
        return None
    if settings.callback_secret is None:
        raise InvalidOption(
            "callback",
            "callbacks are signed, and there is nothing to sign them with: set `callback_secret`, "
            "the same for submitters and servers.",
        )
    return check_callback(options.callback, settings.callback_hosts)


def _joined(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(some + more)) if some or more else ()


def submit_calls(
    home: Home, calls: Sequence[Call[R_co]], connection: object | None = None
) -> list[Handle[R_co]]:
    """Submit calls in one store call, all or none, from sync code."""
    chosen = _connection_of(calls, connection)
    if chosen is None:
        return home.wait_for(submit_calls_async(home, calls))
    # In this very thread: most connections may not be used in any other.
    verbs = home.wait_for(home.verbs())
    return _handles(home, calls, verbs.submit_within(calls, chosen))


async def submit_calls_async(
    home: Home, calls: Sequence[Call[R_co]], connection: object | None = None
) -> list[Handle[R_co]]:
    """The same from async code."""
    chosen = _connection_of(calls, connection)
    verbs = await home.verbs()
    if chosen is None:
        return _handles(home, calls, await verbs.submit_many(calls))
    return _handles(home, calls, await verbs.submit_within_async(calls, chosen))


def _connection_of(calls: Sequence[Call[Any]], given: object | None) -> object | None:
    """The caller's connection that all of them go through, if any does."""
    chosen = given
    for call in calls:
        wanted = call.options.connection
        if wanted is not None:
            if chosen is not None and wanted is not chosen:
                raise InvalidOption(
                    "connection", "calls submitted together go through one connection, not several"
                )
            chosen = wanted
    return chosen


def _handles(
    home: Home, calls: Sequence[Call[R_co]], answers: Sequence[Added]
) -> list[Handle[R_co]]:
    return [
        Handle(home, added.task_id, call.definition.result_of, added.outcome)
        for call, added in zip(calls, answers, strict=True)
    ]
