"""A decorator's options, read and checked against the function they stand on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.core.duration import LONGEST, parse_size
from holdfast.core.task import Priority
from holdfast.definitions import readers
from holdfast.definitions.batch import BatchRule, read_batch
from holdfast.definitions.coalescing import CoalescingRule, read_coalescing
from holdfast.definitions.gate_makers import Makers, read_limits, task_scope
from holdfast.definitions.keys import MakeKey, key_maker
from holdfast.definitions.options import BatchKeywords, Executor, Retry, SubmitKeywords
from holdfast.definitions.signature import Signature, task_name
from holdfast.errors import InvalidOption


def _retry(option: str, value: object) -> Retry:
    if callable(value):
        return value
    return readers.read_policy(option, value)


def _exceptions(option: str, value: object) -> tuple[type[BaseException], ...]:
    kinds = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidOption(option, f"expected exception classes, got {kind!r}")
    return kinds


def _growth(option: str, value: object) -> float:
    if isinstance(value, (int, float)) and 1 <= value <= 100 and not math.isnan(value):
        return float(value)
    raise InvalidOption(option, f"expected a number from 1 to 100, got {value!r}")


def _truth(option: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidOption(option, f"expected True or False, got {value!r}")


def _memory(option: str, value: object) -> int:
    size = readers.reread(option, parse_size, value)
    if size < 1024 * 1024:
        raise InvalidOption(option, f"expected 1 MiB or more, got {value!r}")
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a decorator said. None for `max_retries` and `timeout` means: by priority; an infinite
    `timeout` means no limit.
    """

    name: str
    executor: Executor
    queue: str = readers.option(readers.read_name, "default")
    priority: Priority = readers.option(readers.read_priority, Priority.NORMAL)
    max_retries: int | None = readers.option(readers.read_retries)
    timeout: float | None = readers.option(readers.read_timeout)
    timeout_growth: float = readers.option(_growth, 1.0)
    timeout_cap: float = readers.option(readers.read_duration, LONGEST)
    stop_grace: float | None = readers.option(readers.read_duration)
    retry: Retry | None = readers.option(_retry)
    retry_for: tuple[type[BaseException], ...] = readers.option(_exceptions, ())
    no_retry_for: tuple[type[BaseException], ...] = readers.option(_exceptions, ())
    lock: MakeKey | None = None
    unique: MakeKey | Literal[True] | None = None
    memory_limit: int | None = readers.option(_memory)
    tags: tuple[str, ...] = readers.option(readers.read_tags, ())
    requires: frozenset[str] = readers.option(readers.read_capabilities, frozenset())
    secret_fields: tuple[str, ...] = ()
    keep: bool = readers.option(_truth, True)
    limits: Makers = ()
    coalescing: CoalescingRule | None = None
    batch: BatchRule | None = readers.option(read_batch)


_AT_A_SUBMIT: Mapping[str, str] = {
    name: f"an option of one submit, not of the task: `f.options({name}=…).submit(…)`"
    for name in SubmitKeywords.__annotations__
} | {"unique_key": "`unique` at the decorator: `@app.task(unique='order:{order_id}')`"}


def read_spec(
    function: Callable[..., Any], signature: Signature, keywords: Mapping[str, object]
) -> Spec:
    """Read a decorator's keywords; `InvalidOption` names the first that makes no sense."""
    known = BatchKeywords.__annotations__
    words = readers.in_our_words(keywords, known, elsewhere=_AT_A_SUBMIT)
    given = {name: value for name, value in words.items() if value is not None}
    read = readers.read_each(Spec, given)
    read["name"] = readers.read_name("name", given.get("name", task_name(function)))
    read["executor"] = _executor(signature, given.get("executor"))
    if "lock" in given:
        read["lock"] = key_maker("lock", given["lock"], signature.names)
    if "unique" in given:
        read["unique"] = _unique(given["unique"], signature)
    if "secret_fields" in given:
        read["secret_fields"] = _secret_fields(given["secret_fields"], signature)
    read["limits"] = read_limits(given, task_scope(read["name"]), signature.names)
    read["coalescing"] = read_coalescing(given, signature.names)
    spec = Spec(**read)
    if spec.batch is not None:
        signature.refuse_unless_a_list()
    if spec.memory_limit is not None and spec.executor is not Executor.PROCESS:
        raise InvalidOption(
            "memory_limit", "holds for tasks with executor='process' only; add that, or drop it"
        )
    return spec


def _executor(signature: Signature, value: object) -> Executor:
    natural = Executor.ASYNC if signature.is_async else Executor.THREAD
    if value is None:
        return natural
    words = [e.value for e in Executor]
    if value not in words:
        raise InvalidOption(
            "executor",
            f"expected {', '.join(words)}, got {value!r}.{readers.hint(value, words)}",
        )
    executor = Executor(str(value))
    if executor not in {natural, Executor.PROCESS}:
        kind = "an async function" if signature.is_async else "a plain function"
        raise InvalidOption(
            "executor", f"{kind} runs as {natural.value!r} or 'process', got {value!r}"
        )
    return executor


def _unique(value: object, signature: Signature) -> MakeKey | Literal[True] | None:
    if isinstance(value, bool):
        return True if value else None
    return key_maker("unique", value, signature.names)


def _secret_fields(value: object, signature: Signature) -> tuple[str, ...]:
    fields = readers.read_tags("secret_fields", value)
    for field in fields:
        first = field.partition(".")[0]
        if first not in signature.names:
            raise InvalidOption(
                "secret_fields",
                f"names {first!r}, which is no parameter of the task."
                f"{readers.hint(first, signature.names)} "
                f"It has: {', '.join(signature.names) or 'none'}.",
            )
    return fields
