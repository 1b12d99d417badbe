"""A definition: the decorated function with its name, its schema and its defaults.

It stays callable as the function it was made from; submitting is beside that (`f.submit(…)`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from holdfast.codec import ArgumentCodec, Checked, ResultCodec, digest
from holdfast.codec.hiding import marked_secrets
from holdfast.core.attempt import Claim
from holdfast.core.gate import Gate
from holdfast.core.lifecycle import Backoff
from holdfast.core.retry import RetryPolicy
from holdfast.core.task import Json, Task
from holdfast.definitions.backoff import backoff_for
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Link
from holdfast.definitions.gate_makers import GateMaker, Makers, fixed_gates, gates_of, made_gates
from holdfast.definitions.hints import Unresolved
from holdfast.definitions.home import Home
from holdfast.definitions.options import NO_OPTIONS, Executor, Options, SubmitKeywords
from holdfast.definitions.references import (
    NOTHING_LATER,
    ResultOf,
    has_references,
    references_in,
)
from holdfast.definitions.signature import Signature
from holdfast.definitions.spec import Spec
from holdfast.definitions.submittable import Submittable, WithOptions
from holdfast.errors import (
    EventTimeout,
    Fatal,
    InvalidArguments,
    InvalidOption,
    Retry,
    StepRefused,
)

__all__ = ["Definition", "Executor"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
T = TypeVar("T")

_IN_VAIN = (Fatal, InvalidArguments, StepRefused, EventTimeout)
"""What another attempt would raise again."""


class Definition(Submittable[P, R], Generic[P, R, C]):
    """A task's definition: parameters `P`, result `R`, and `C` what a direct call returns (`R`, or
    a coroutine of it).
    """

    __name__: str
    __qualname__: str

    def __init__(
        self, handler: Callable[..., C], signature: Signature, spec: Spec, home: Home
    ) -> None:
        keep: Any = self
        update_wrapper(keep, handler)
        self.handler = handler
        self.parameters = signature.names
        self.is_async = signature.is_async
        self.wants_context = signature.wants_context
        self._take(spec)
        self._home = home
        self._signature = signature
        self._arguments: ArgumentCodec | None = None
        self._without: dict[frozenset[str], ArgumentCodec] = {}
        self._result: ResultCodec | None = None
        self._prepare()

    def _take(self, spec: Spec) -> None:
        self.name = spec.name
        self.executor = spec.executor
        self.queue = spec.queue
        self.priority = spec.priority
        self.max_retries = spec.max_retries
        self.timeout = spec.timeout
        self.timeout_growth = spec.timeout_growth
        self.timeout_cap = spec.timeout_cap
        self.stop_grace = spec.stop_grace
        self.retry = spec.retry
        self.retry_for = spec.retry_for
        self.no_retry_for = spec.no_retry_for
        self.lock = spec.lock
        self.unique = spec.unique
        self.memory_limit = spec.memory_limit
        self.tags = spec.tags
        self.requires = spec.requires
        self.secret_fields = spec.secret_fields
        self.keep = spec.keep
        self.limits = spec.limits
        self.fixed_gates = fixed_gates(spec.limits)
        self.coalescing = spec.coalescing
        self.batch = spec.batch

    @property
    def home(self) -> Home:
        return self._home

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        return self.make_call(args, kwargs, NO_OPTIONS)

    def options(self, **options: Unpack[SubmitKeywords]) -> WithOptions[P, R]:
        return WithOptions(self, options)

    def s(self, *args: Any, **kwargs: Any) -> Link[R]:
        return self.link(args, kwargs, NO_OPTIONS)

    def link(self, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> Link[R]:
        """Arguments by the names of their parameters: some may be missing, none is checked yet."""
        bound = self._argument_codec().bind(args, kwargs)
        return Link(definition=self, chosen=options, bound=bound)

    def load(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Validate a stored payload into call arguments, without the context.

        `InvalidArguments` if it does not fit the function as it is now.
        """
        return (self._arguments or self._argument_codec()).load(payload)

    def start(self, context: object, payload: bytes) -> Any:
        """Call the handler with a stored payload's arguments: its result, or its coroutine."""
        args, kwargs = (self._arguments or self._argument_codec()).load(payload)
        if self.wants_context:
            return self.handler(context, *args, **kwargs)
        return self.handler(*args, **kwargs)

    def masked(self, payload: bytes) -> Json:
        """A stored payload as anybody may see it: secrets are stars."""
        return (self._arguments or self._argument_codec()).masked(payload)

    def secrets_in(self, payload: bytes) -> frozenset[str]:
        """What of a stored payload must not be seen in any text about its task."""
        try:
            return (self._arguments or self._argument_codec()).secrets_in(payload)
        except _Undefined:
            return marked_secrets(payload)

    def dump_result(self, value: Any) -> bytes:
        """Encode what the handler returned; `PayloadRefused` if it cannot be stored."""
        codec = self._result or self._result_codec()
        return codec.dump(value, limit=self._home.settings.max_result)

    def load_result(self, result: bytes) -> R:
        """Decode a stored result as the type the handler's annotation promises."""
        value: R = (self._result or self._result_codec()).load(result)
        return value

    def result_of(self, task: Task) -> R:
        """The result of a completed task of this definition."""
        return self.load_result(b"null" if task.result is None else task.result)

    def is_retriable(self, error: BaseException) -> bool:
        """Whether trying again may help. Only what `retry_for` names, if it names something, and
        what the handler itself asks for.
        """
        if isinstance(error, (*_IN_VAIN, *self.no_retry_for)):
            return False
        return not self.retry_for or isinstance(error, (Retry, *self.retry_for))

    def backoff(self, claim: Claim, draw: Callable[[], float], default: RetryPolicy) -> Backoff:
        """How long to wait before the next attempt: the task's own policy, else this definition's,
        else the default.
        """
        return backoff_for(self.name, claim.retry, self.retry, draw, default)

    def timeout_of(self, claim: Claim) -> float | None:
        """The time limit of this attempt: the task's, grown by the attempts charged before."""
        if claim.timeout is None or self.timeout_growth == 1.0:
            return claim.timeout
        grown = claim.timeout * self.timeout_growth ** min(claim.charged, 100)
        return max(claim.timeout, min(grown, self.timeout_cap))

    def make_call(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
    ) -> Call[R]:
        """Check arguments as a Python caller gives them."""
        codec = self._argument_codec()
        if has_references(args) or has_references(kwargs.values()):
            bound = codec.bind(args, kwargs)
            return self.make_later_call(bound, references_in(bound), options)
        return self._call(codec, codec.check(args, kwargs), options)

    def make_json_call(
        self,
        arguments: Mapping[str, Json],
        options: Options,
        *,
        strict: bool = False,
        later: Mapping[str, ResultOf] = NOTHING_LATER,
    ) -> Call[R]:
        """Check arguments that are JSON values by name; with `strict`, `"3"` is no integer. Those
        that are results to be come `later`.
        """
        codec = self._argument_codec()
        for name in later:
            self._refuse_stranger(name, arguments)
        if later:
            codec = self._codec_without(frozenset(later))
        checked = codec.check_json(arguments, strict=strict)
        return self._call(codec, checked, options, later)

    def missing(self, given: Collection[str]) -> str | None:
        """The first parameter that must be given and is not."""
        return self._argument_codec().missing(given)

    def make_later_call(
        self, bound: Mapping[str, Any], later: Mapping[str, ResultOf], options: Options
    ) -> Call[R]:
        """Check bound arguments, but for those that are results to be."""
        codec = self._codec_without(frozenset(later))
        given = {name: value for name, value in bound.items() if name not in later}
        return self._call(codec, codec.check_bound(given), options, later)

    def made_gates(self, payload: bytes, makers: Makers) -> list[tuple[GateMaker, Gate]]:
        """The gates that these make for a stored payload; `InvalidArguments` if it does not fit."""
        codec = self._argument_codec()
        values = codec.values(payload)
        return made_gates(makers, *codec.spread(values), values)

    def json_schema(self, reference: str) -> dict[str, Json]:
        """What `make_json_call` takes, as a JSON Schema; see `ArgumentCodec.json_schema`."""
        return self._argument_codec().json_schema(reference)

    def check_limit(self, payload: bytes, limit: int) -> None:
        """Refuse a payload that is too large."""
        if len(payload) > limit:
            self._argument_codec().check_limit(payload, limit)

    def _call(
        self,
        codec: ArgumentCodec,
        checked: Checked,
        options: Options,
        later: Mapping[str, ResultOf] = NOTHING_LATER,
    ) -> Call[R]:
        if not self.keep:
            _refuse_what_needs_keeping(options)
        values = checked.values
        payload = codec.dump(checked)
        lock, unique_key, fingerprint = options.lock, options.unique_key, None
        if options.idempotency_key is not None or self.unique is True:
            fingerprint = codec.digest(values) if not later else _digest(codec, values, later)
        if unique_key is None and self.unique is True:
            unique_key = fingerprint
        elif unique_key is None and callable(self.unique):
            unique_key = _made("unique", self.unique, codec, values, later)
        if lock is None and self.lock is not None:
            lock = _made("lock", self.lock, codec, values, later)
        results = tuple((name, each.ref) for name, each in later.items() if not each.is_by_name)
        gates, coalescing = self.fixed_gates, None
        if gates is None:
            make_gates = partial(gates_of, self.limits)
            gates = _made("concurrency", make_gates, codec, values, later)
        if self.coalescing is not None:
            coalescing = self.coalescing.of(*codec.spread(values), values, options)
        return Call(
            self, payload, options, lock, unique_key, fingerprint, gates, coalescing, results
        )

    def _codec_without(self, later: frozenset[str]) -> ArgumentCodec:
        """The codec of the parameters whose arguments are known at submit."""
        known = self._without.get(later)
        if known is None:
            known = self._signature.argument_codec(self.name, self.secret_fields, later)
            self._without[later] = known
        return known

    def _refuse_stranger(self, name: str, arguments: Mapping[str, Json]) -> None:
        if name in arguments:
            problem = "is given twice: as a parameter and as a result of another task"
        elif name not in self.parameters:
            listed = ", ".join(self.parameters) or "none"
            problem = f"is no parameter of task {self.name!r}. It has: {listed}"
        else:
            return
        raise InvalidArguments(
            f"results.{name} {problem}. Nothing was submitted.",
            problems=((f"results.{name}", problem),),
        )

    def _prepare(self) -> None:
        """Build the codecs now, so that a bad annotation shows where it is written; names that are
        not defined yet are looked up again at the first use.
        """
        for build in (self._argument_codec, self._result_codec):
            try:
                build()
            except _Undefined:
                continue

    def _argument_codec(self) -> ArgumentCodec:
        if self._arguments is None:
            try:
                self._arguments = self._signature.argument_codec(
                    self.name, self.secret_fields, is_batch=self.batch is not None
                )
            except Unresolved as error:
                raise _Undefined(self.name, error) from None
        return self._arguments

    def _result_codec(self) -> ResultCodec:
        if self._result is None:
            try:
                self._result = self._signature.result_codec(
                    self.name, is_batch=self.batch is not None
                )
            except Unresolved as error:
                raise _Undefined(self.name, error) from None
        return self._result

    def __repr__(self) -> str:
        return f"<task {self.name}>"


def _made(
    option: str,
    make: Callable[[tuple[Any, ...], dict[str, Any], dict[str, Any]], T],
    codec: ArgumentCodec,
    values: dict[str, Any],
    later: Mapping[str, ResultOf],
) -> T:
    """What is made from the arguments at submit."""
    if not later:
        return make(*codec.spread(values), values)
    try:
        return make(*codec.spread(values), values)
    except (InvalidOption, LookupError, TypeError) as error:
        raise InvalidOption(
            option,
            f"is made from the arguments, and {', '.join(later)} will only be known when another "
            f"task has completed ({error}). Make it from the others, or give it at submit.",
        ) from None


def _digest(codec: ArgumentCodec, values: dict[str, Any], later: Mapping[str, ResultOf]) -> str:
    taken = {name: [each.source, *each.targets] for name, each in later.items()}
    return digest(codec.digest(values), taken)


def _refuse_what_needs_keeping(options: Options) -> None:
    for name in ("callback", "idempotency_key"):
        if getattr(options, name) is not None:
            raise InvalidOption(
                name,
                "works as long as the task is kept, and this one is forgotten once it has "
                "succeeded (`keep=False`). Drop one of the two; `unique_key` works with both.",
            )


class _Undefined(InvalidArguments):
    """The annotations name something that does not exist where they stand."""

    def __init__(self, task: str, error: Unresolved) -> None:
        super().__init__(
            f"the annotations of task {task!r} cannot be resolved: {error}. Define or import what "
            "they name at the top level of the task's module (not only for type checkers)."
        )
