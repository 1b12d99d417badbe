"""The gates that limits, rates, fair shares and breakers become, for tasks and for queues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from holdfast.codec.secrets import revealed
from holdfast.core.breaker import BreakerRule, BreakerState
from holdfast.core.gate import UNBOUNDED, Gate, GateKind, kind_of
from holdfast.core.scope import KINDS, QUEUE, TASK, Scope, is_limit
from holdfast.definitions.keys import MakeKey, key_maker
from holdfast.definitions.limits import MOST, Breaker, Fair, Limit, LimitKeywords, Rate
from holdfast.definitions.readers import (
    LONGEST_KEY,
    hint,
    read_duration,
    read_key,
    read_name,
    read_text,
)
from holdfast.errors import InvalidOption

T = TypeVar("T")

NOBODY: Final = "-"
"""What `{owner}` is in the key of a queue's limit, for tasks without one."""


class GateMaker(NamedTuple):
    """Makes the gate that a task must pass. Without a `make_key` all have the same."""

    kind: GateKind
    scope: Scope
    make_key: MakeKey | None
    capacity: int = UNBOUNDED
    period: float = 0.0
    weights: Mapping[str, float] = {}
    rule: BreakerRule | None = None

    def gate(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
    ) -> Gate | None:
        """Of a task with these arguments; None if it has no key."""
        if self.make_key is None:
            return Gate(self.kind, str(self.scope), self.capacity, self.period)
        key = self.make_key(args, kwargs, named)
        if key is None:
            return None
        capacity = self.capacity
        if key in self.weights:
            capacity = max(1, round(self.weights[key] * capacity))
        name = read_key(f"{self.kind} of {self.scope}", str(self.scope._replace(key=key)))
        return Gate(self.kind, name, capacity, self.period)


Makers = tuple[GateMaker, ...]


def made_gates(
    makers: Makers, args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
) -> list[tuple[GateMaker, Gate]]:
    """The gates of a task with these arguments, and who made them."""
    made = ((maker, maker.gate(args, kwargs, named)) for maker in makers)
    return [(maker, gate) for maker, gate in made if gate is not None]


def gates_of(
    makers: Makers, args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
) -> tuple[Gate, ...]:
    """The gates of a task with these arguments."""
    return tuple(gate for _, gate in made_gates(makers, args, kwargs, named))


def fixed_gates(makers: Makers) -> tuple[Gate, ...] | None:
    """The gates that every task has, if no argument matters."""
    if any(maker.make_key is not None for maker in makers):
        return None
    return gates_of(makers, (), {}, {})


def read_limits(
    given: Mapping[str, object], scope: Scope, parameters: Collection[str] | None
) -> Makers:
    """Read what bounds a definition or a queue (`LimitKeywords`); `parameters` are those that keys
    may name, None if that shows at a submit.
    """
    makers: list[GateMaker] = []
    for option in LimitKeywords.__annotations__:
        if given.get(option) is not None:
            makers += _READERS[option](option, given[option], scope, parameters)
    if makers and "[" in scope.name:
        raise InvalidOption(
            next(word for word in LimitKeywords.__annotations__ if given.get(word) is not None),
            f"the name of a {scope.of} with limits holds no '[': they are shown as "
            f"limit:{scope.of}:NAME[KEY]. Got {scope.name!r}.",
        )
    _refuse_doubles(makers)
    return tuple(makers)


def _refuse_doubles(makers: Iterable[GateMaker]) -> None:
    seen: set[tuple[GateKind, Scope, bool]] = set()
    for maker in makers:
        known = (maker.kind, maker.scope, maker.make_key is None)
        if known in seen:
            raise InvalidOption(
                _OPTION_OF[maker.kind],
                f"two of them would be {maker.kind}:{maker.scope}, and keys of the one could be "
                "keys of the other. Give one of them a name of its own: `name='per-user'`.",
            )
        seen.add(known)


def _several(option: str, value: object, kind: type[T], example: str) -> list[T]:
    many: list[T] = []
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if not isinstance(one, kind):
            raise InvalidOption(option, f"expected {example}, one or a list, got {one!r}")
        many.append(one)
    if not many:
        raise InvalidOption(option, "expected at least one, got an empty list; leave it out")
    return many


Parameters = Collection[str] | None


def _placed(scope: Scope, name: str | None) -> Scope:
    return scope if name is None else Scope("", name)


def _keyed(option: str, key: object, parameters: Parameters) -> MakeKey | None:
    return None if key is None else key_maker(f"{option} key", key, parameters)


def _limits(option: str, value: object, scope: Scope, parameters: Parameters) -> list[GateMaker]:
    many = value if isinstance(value, (list, tuple)) else [value]
    limits = [
        Limit(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in many
    ]
    return [
        GateMaker(
            GateKind.LIMIT, _placed(scope, one.name), _keyed(option, one.key, parameters), one.n
        )
        for one in _several(option, limits, Limit, "a number or Limit(5, key='{tenant}')")
    ]


def _rates(option: str, value: object, scope: Scope, parameters: Parameters) -> list[GateMaker]:
    return [
        GateMaker(
            GateKind.RATE,
            _placed(scope, one.name),
            _keyed(option, one.key, parameters),
            one.n,
            read_duration("Rate.per", one.per),
        )
        for one in _several(option, value, Rate, "Rate(100, per='1m')")
    ]


def _shares(option: str, value: object, scope: Scope, parameters: Parameters) -> list[GateMaker]:
    fair = value if isinstance(value, Fair) else Fair(value)  # type: ignore[arg-type] # read next
    return [
        GateMaker(
            GateKind.SHARE,
            _placed(scope, fair.name),
            key_maker(option, fair.by, parameters),
            fair.window,
            weights=dict(fair.weights),
        )
    ]


def _breakers(option: str, value: object, scope: Scope, parameters: Parameters) -> list[GateMaker]:
    return [
        GateMaker(
            GateKind.BREAKER,
            _placed(scope, one.name),
            _keyed(option, one.key, parameters),
            rule=BreakerRule(
                failures=float(one.failures),
                window=read_duration("Breaker.window", one.window),
                at_least=one.at_least,
                cool_down=read_duration("Breaker.cool_down", one.cool_down),
            ),
        )
        for one in _several(option, value, Breaker, "Breaker(failures=0.5, window='1m')")
    ]


_READERS: Final = {
    "concurrency": _limits,
    "rate": _rates,
    "fair_by": _shares,
    "breaker": _breakers,
}
_OPTION_OF: Final = {
    GateKind.LIMIT: "concurrency",
    GateKind.RATE: "rate",
    GateKind.SHARE: "fair_by",
    GateKind.BREAKER: "breaker",
}


def read_queue(queue: str, words: Mapping[str, object]) -> Makers:
    """Read what bounds a queue; `InvalidOption` names the first that makes no sense."""
    known = LimitKeywords.__annotations__
    for word in words:
        if word not in known:
            raise InvalidOption(
                word, f"no such option of a queue.{hint(word, known)} Expected: {', '.join(known)}."
            )
    return read_limits(words, Scope(QUEUE, read_name("queue", queue)), None)


def queue_gates(makers: Makers, payload: bytes, owner: str | None) -> tuple[Gate, ...]:
    """The gates of a task of a queue, from its payload: the same whatever door it came through."""
    if all(maker.make_key is None for maker in makers):
        return gates_of(makers, (), {}, {})
    return gates_of(makers, *queue_values(payload, owner))


def queue_values(
    payload: bytes, owner: str | None
) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """What keys of a queue's limits are made from: arguments as `MakeKey` takes them."""
    named = {"owner": owner or NOBODY, **orjson.loads(revealed(payload))}
    return (named,), {}, named


def task_scope(name: str) -> Scope:
    """Of a definition's limits."""
    return Scope(TASK, name)


def read_limit_name(name: object) -> str:
    """Read the name of a limit, as it is shown: `limit:task:send[acme]`."""
    text = read_text("name", name, LONGEST_KEY + 10)
    if not is_limit(text):
        raise InvalidOption(
            "name",
            f"expected the name of a {', '.join(KINDS)} as it is shown, such as "
            f"'limit:task:send[acme]', 'rate:queue:mail' or 'limit:stripe', got {name!r}",
        )
    return text


def read_limit_value(name: str, value: object) -> int | BreakerState:
    """Read how many may pass a limit; of a breaker whether it is open."""
    if kind_of(name) is GateKind.BREAKER:
        if value in (BreakerState.OPEN, BreakerState.CLOSED):
            return BreakerState(str(value))
        raise InvalidOption("value", f"a breaker is set 'open' or 'closed', got {value!r}")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return value
    raise InvalidOption("value", f"expected a whole number from 0 to {MOST:,}, got {value!r}")
