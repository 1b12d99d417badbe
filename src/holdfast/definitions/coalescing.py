"""`debounce=` and `throttle=`: several submits that become one task."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.core.coalescing import Coalescing, CoalescingKind
from holdfast.core.duration import Duration
from holdfast.definitions import readers
from holdfast.definitions.keys import KeyMaker, MakeKey, key_maker
from holdfast.errors import InvalidOption

if TYPE_CHECKING:
    from holdfast.definitions.options import Options


@dataclass(frozen=True, slots=True)
class Debounce:
    """Run `time` after the last submit, with its arguments: `Debounce("30s", key="{doc_id}")`.

    `key` is a template over the arguments or a function of them: submits of one key (and one owner)
    are one task; without it, all of the definition are. `max` bounds how long submits that keep
    coming can push it off, counted from the first.
    """

    time: Duration
    _: KW_ONLY
    key: KeyMaker | None = None
    max: Duration | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """At most one task in `time`: the first submit wins, later ones get its task.

    `key` is as in `Debounce`.
    """

    time: Duration
    _: KW_ONLY
    key: KeyMaker | None = None


class CoalescingRule(NamedTuple):
    """What a definition says, read."""

    kind: CoalescingKind
    make_key: MakeKey | None
    seconds: float
    most: float | None

    def of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any], options: Options
    ) -> Coalescing | None:
        """How a call with these arguments is coalesced; None if its key is None."""
        self._refuse_what_cannot_be(options)
        key = "" if self.make_key is None else self.make_key(args, kwargs, named)
        return None if key is None else Coalescing(self.kind, key, self.seconds, self.most)

    def _refuse_what_cannot_be(self, options: Options) -> None:
        for name, why in _CANNOT_BE.items():
            if getattr(options, name) is not None:
                raise InvalidOption(name, f"{why} (the task has `{self.kind}`)")
        if self.kind is not CoalescingKind.DEBOUNCE:
            return
        for name in ("delay", "run_at"):
            if getattr(options, name) is not None:
                raise InvalidOption(
                    name, "and `debounce` both say when the task starts; leave this out"
                )
        expires = options.expires_in
        if expires is not None and expires <= self.seconds:
            raise InvalidOption(
                "expires",
                f"the task starts {self.seconds:g} s after the last submit (`debounce`), when it "
                "would have expired; give it longer",
            )


_CANNOT_BE = {
    "connection": "a transaction of yours cannot look at, or wait for, what other submits of the "
    "key do meanwhile. Submit after your commit, without `connection`",
    "unique_key": "would lead to one task and the key of the coalescing to another; leave this out",
    "idempotency_key": "would lead to one task and the key of the coalescing to another; leave this"
    " out: a repeat of the submit is coalesced anyway",
}


def read_coalescing(
    given: Mapping[str, object], parameters: Collection[str]
) -> CoalescingRule | None:
    """Read a decorator's `debounce` or `throttle`."""
    named = [kind for kind in CoalescingKind if kind in given]
    if not named:
        return None
    if len(named) > 1:
        raise InvalidOption(
            "throttle",
            "the first submit wins, with `debounce` the last one does; give one of them",
        )
    kind = named[0]
    if given.get("unique"):
        raise InvalidOption(
            "unique",
            f"returns the task that waits, `{kind}` says which submit wins; give one of them",
        )
    return _read(kind, given[kind], parameters)


def _read(kind: CoalescingKind, value: object, parameters: Collection[str]) -> CoalescingRule:
    wanted = Debounce if kind is CoalescingKind.DEBOUNCE else Throttle
    if isinstance(value, (Debounce, Throttle)):
        if not isinstance(value, wanted):
            raise InvalidOption(kind, f"expected {wanted.__name__}(…) or a duration, got {value!r}")
    else:
        value = wanted(readers.read_duration(kind, value))
    seconds = readers.read_duration(f"{kind}.time", value.time)
    if seconds <= 0:
        raise InvalidOption(kind, f"expected a duration longer than 0, got {value.time!r}")
    make_key = None if value.key is None else key_maker(f"{kind}.key", value.key, parameters)
    return CoalescingRule(kind, make_key, seconds, _most(value, seconds))


def _most(value: Debounce | Throttle, seconds: float) -> float | None:
    if not isinstance(value, Debounce) or value.max is None:
        return None
    most = readers.read_duration("debounce.max", value.max)
    if most < seconds:
        raise InvalidOption(
            "debounce.max",
            f"expected no less than the {seconds:g} s of one wait, got {value.max!r}",
        )
    return most
