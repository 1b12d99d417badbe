"""What may be said about a task besides its arguments.

`TaskKeywords` stand at the decorator, `SubmitKeywords` at one submit; a submit's word wins over its
definition's, only tags add up. None always means "not given".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Literal, TypedDict

from holdfast.core.duration import Duration, Size, parse_duration
from holdfast.core.flow import When
from holdfast.core.ids import is_task_id
from holdfast.core.retry import RetryPolicy
from holdfast.core.task import Priority, TaskId
from holdfast.definitions import readers
from holdfast.definitions.batch import Batch
from holdfast.definitions.coalescing import Debounce, Throttle
from holdfast.definitions.handle import TaskRef
from holdfast.definitions.instants import read_instant
from holdfast.definitions.keys import KeyMaker
from holdfast.definitions.limits import LimitKeywords
from holdfast.errors import InvalidOption

Retry = RetryPolicy | Callable[[int], float]
"""How long to wait after the n-th charged attempt: a policy, or a function from n to seconds."""
Unlimited = Literal["unlimited"]
Tags = str | Collection[str] | Mapping[str, str | int]
"""One tag, several, or names with values: `{"batch": "daily"}` is the tag `batch=daily`."""


def read_tasks(option: str, value: object) -> tuple[TaskId, ...]:
    """Read which tasks are meant: one or several, by handles or ids."""
    several = isinstance(value, Collection) and not isinstance(value, str)
    many: Any = value if several else [value]
    for n, each in enumerate(many):
        if not is_task_id(str(each).strip().lower()):
            where = f"{option}[{n}]" if several else option
            raise InvalidOption(where, f"expected a handle or the id of a task, got {each!r}")
    return tuple(dict.fromkeys(TaskId(str(each).strip().lower()) for each in many))


class Executor(StrEnum):
    """Where a handler runs."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"


class TaskKeywords(LimitKeywords, total=False):
    """The decorator's options; those of `LimitKeywords` bound how many run.

    `retry_for` are the only exceptions that are tried again, `no_retry_for` those that are not.
    `timeout_growth` multiplies the time limit with every charged attempt, up to `timeout_cap`.
    `stop_grace` is how long a body that was asked to stop is left alone before it is interrupted.
    `lock` and a `unique` that is text are templates over the arguments. `secret_fields` are
    parameters, or places in them (`card.number`), that are never shown. With `keep=False` a task
    is forgotten, history and all, about a minute after it has succeeded. `debounce` runs the last
    of several submits, so long after it; `throttle` the first of all in that time.
    """

    name: str | None
    queue: str | None
    priority: str | int | Priority | None
    max_retries: int | Unlimited | None
    timeout: Duration | None
    timeout_growth: float | None
    timeout_cap: Duration | None
    stop_grace: Duration | None
    retry: Retry | str | None
    retry_for: type[Exception] | tuple[type[Exception], ...] | None
    no_retry_for: type[Exception] | tuple[type[Exception], ...] | None
    lock: KeyMaker | None
    unique: bool | KeyMaker | None
    executor: str | Executor | None
    memory_limit: Size | None
    tags: Tags | None
    requires: str | Collection[str] | None
    secret_fields: str | Collection[str] | None
    keep: bool | None
    debounce: Duration | Debounce | None
    throttle: Duration | Throttle | None


class BatchKeywords(TaskKeywords, total=False):
    """The decorator's options, and what makes the task one of many: `batch`."""

    batch: Batch | None


class SubmitKeywords(TypedDict, total=False):
    """One submit's options.

    `run_at` is an aware datetime or ISO text with an offset; a naive one needs `timezone`.
    `expires` is a duration from now, or an instant. `lock` and the keys are taken literally: they
    are often made from users' data, which must not be read as a template. `callback` is a URL that
    a server tells when the task has ended. `after` are tasks that must have ended before it starts,
    handles or ids, and `when` is how: well (`success`, unless told otherwise), not (`failure`), or
    either way (`always`); it is cancelled if they end otherwise. `traceparent` is the W3C header of
    the trace that the task belongs to; without it, the running task's or the current span's is
    taken. `connection` is your own open connection to the store's database: the task is part of its
    transaction, visible when you commit and gone if you roll back.
    """

    queue: str | None
    priority: str | int | Priority | None
    max_retries: int | Unlimited | None
    timeout: Duration | None
    retry: RetryPolicy | str | None
    delay: Duration | None
    run_at: datetime | str | None
    timezone: str | None
    expires: Duration | datetime | None
    unique_key: str | None
    idempotency_key: str | None
    lock: str | None
    tags: Tags | None
    requires: str | Collection[str] | None
    owner: str | None
    callback: str | None
    traceparent: str | None
    connection: object | None
    after: TaskRef | Collection[TaskRef] | None
    when: str | When | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A submit's options after reading. An infinite `timeout` means no limit."""

    queue: str | None = readers.option(readers.read_name)
    priority: Priority | None = readers.option(readers.read_priority)
    max_retries: int | None = readers.option(readers.read_retries)
    timeout: float | None = readers.option(readers.read_timeout)
    retry: RetryPolicy | None = readers.option(readers.read_policy)
    delay: float | None = readers.option(readers.read_duration)
    run_at: datetime | None = None
    expires_in: float | None = None
    expires_at: datetime | None = None
    unique_key: str | None = readers.option(readers.read_key)
    idempotency_key: str | None = readers.option(readers.read_key)
    lock: str | None = readers.option(readers.read_key)
    tags: tuple[str, ...] = readers.option(readers.read_tags, ())
    requires: frozenset[str] | None = readers.option(readers.read_capabilities)
    owner: str | None = readers.option(readers.read_key)
    callback: str | None = readers.option(readers.read_key)
    signer: str | None = None  # the token whose secret signs the notice
    traceparent: str | None = readers.option(readers.read_trace)
    connection: object | None = readers.option(lambda _name, value: value)
    after: tuple[TaskId, ...] = readers.option(read_tasks, ())
    when: When = readers.option(partial(readers.read_word, When), When.SUCCESS)


NO_OPTIONS = Options()

_AT_THE_DECORATOR: Mapping[str, str] = {
    name: f"an option of the task, not of one submit: `@app.task({name}=…)`"
    for name in BatchKeywords.__annotations__
}


def in_our_words(keywords: Mapping[str, object]) -> dict[str, object]:
    """A submit's keywords by our names."""
    known = SubmitKeywords.__annotations__
    return readers.in_our_words(keywords, known, elsewhere=_AT_THE_DECORATOR)


def read_options(keywords: Mapping[str, object]) -> Options:
    """Read a submit's keywords; `InvalidOption` names the first that makes no sense."""
    given = {name: value for name, value in in_our_words(keywords).items() if value is not None}
    read = readers.read_each(Options, given)
    read |= _start(given) | _expiry(given)
    if "when" in given and "after" not in given:
        raise InvalidOption("when", "says how what it comes `after` must have ended; give that too")
    options = Options(**read)
    _refuse_to_expire_unstarted(options)
    return options


def merged(options: Options, over: Options) -> Options:
    """The options with those of another that were given."""
    given = {
        each.name: value
        for each in fields(over)
        if (value := getattr(over, each.name)) != each.default
    }
    return replace(options, **given) if given else options


def _start(given: Mapping[str, Any]) -> dict[str, Any]:
    if "run_at" not in given:
        if "timezone" in given:
            raise InvalidOption("timezone", "belongs to run_at; give both or neither")
        return {}
    if "delay" in given:
        raise InvalidOption("delay", "and run_at both say when to start; give one of them")
    return {"run_at": read_instant("run_at", given["run_at"], given.get("timezone"))}


def _expiry(given: Mapping[str, Any]) -> dict[str, Any]:
    if "expires" not in given:
        return {}
    value = given["expires"]
    if isinstance(value, datetime):
        return {"expires_at": read_instant("expires", value)}
    try:
        return {"expires_in": parse_duration(value)}
    except ValueError as error:
        if isinstance(value, str) and value[4:5] == "-":
            return {"expires_at": read_instant("expires", value)}
        raise InvalidOption("expires", f"{error}; or a time with an offset") from None


def _refuse_to_expire_unstarted(options: Options) -> None:
    """A task that can only expire is a mistake, and a silent one."""
    late = (options.expires_in is not None and (options.delay or 0.0) >= options.expires_in) or (
        options.expires_at is not None
        and options.run_at is not None
        and options.run_at >= options.expires_at
    )
    if late:
        raise InvalidOption("expires", "the task would expire before it may start; give it longer")
