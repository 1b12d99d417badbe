"""The parts of compositions: links, and what they are put together to (`builders`).

Nothing is checked or stored before `submit()`, which stores all of it in one commit, or nothing.
Only a group may be larger than that: it is stored in slices (`flow.slicing`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace
from itertools import chain as _joined
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, Unpack, cast

import orjson

from holdfast.core.composition import MOST_AT_ONCE
from holdfast.core.flow import ChildOrder, Children, OnFailure, ParentResult, When
from holdfast.core.task import Added, Json
from holdfast.definitions.call import Call
from holdfast.definitions.handle import Handle
from holdfast.definitions.options import NO_OPTIONS, Options, SubmitKeywords, merged, read_options
from holdfast.definitions.readers import read_name, read_word
from holdfast.definitions.references import ResultOf, references_in
from holdfast.errors import InvalidOption

if TYPE_CHECKING:
    from holdfast.definitions.definition import Definition
    from holdfast.definitions.home import Home

SLICE: Final = 1000
"""Members of a group that are stored at a time."""
SLICE_SECONDS: Final = 30.0

R_co = TypeVar("R_co", covariant=True)


class Members:
    """The members of a composition: a list, or what can be gone through once. None is looked at
    but the `first`, until they are stored.
    """

    __slots__ = ("_all", "_label", "first", "known")

    def __init__(self, label: str, given: Iterable[Any]) -> None:
        many = iter(given)
        first = next(many, None)
        if first is None:
            raise InvalidOption(
                label, f"a {label} of nothing has nothing to do: give it one member at least"
            )
        self._label = label
        self.known = len(given) if isinstance(given, Sized) else None
        """How many they are, if that is known before."""
        self.first = _part(f"{label}[0]", first)
        self._all: Iterable[Any] = given if self.known is not None else _joined([first], many)
        if isinstance(given, list | tuple):
            for n, each in enumerate(given):
                _part(f"{label}[{n}]", each)

    @property
    def are_many(self) -> bool:
        """Whether they are too many to be stored at once. Those that have names never are: they may
        wait for each other.
        """
        if self.known is None:
            rest = iter(self._all)
            some = list(islice(rest, SLICE + 1))
            self.known = len(some) if len(some) <= SLICE else None
            self._all = some if len(some) <= SLICE else _joined(some, rest)
            return self.known is None
        return self.known > SLICE and not any(each.name for each in self)

    def listed(self) -> Members:
        """The same with all that is below them at hand."""
        return Members(self._label, [each.listed() for each in islice(self, MOST_AT_ONCE + 1)])

    def slices(self) -> Iterator[list[Composable[Any]]]:
        """All of them, `SLICE` at a time at most, or those that came within `SLICE_SECONDS`."""
        some: list[Composable[Any]] = []
        began = monotonic()
        for each in self:
            some.append(each.listed())
            if len(some) == SLICE or monotonic() - began > SLICE_SECONDS:
                yield some
                some, began = [], monotonic()
        if some:
            yield some

    def __iter__(self) -> Iterator[Composable[Any]]:
        for n, each in enumerate(self._all):
            yield _part(f"[{n}]", each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composable(Generic[R_co]):
    """A part of a composition that results in an `R`: one task (`Link`), or several (`Composite`).

    `name` is what other members of its batch call it, `siblings` are those that it comes after.
    """

    name: str | None = None
    siblings: tuple[tuple[str, When], ...] = ()

    @property
    @abstractmethod
    def home(self) -> Home | None:
        """The app that it belongs to."""

    @abstractmethod
    def decode(self, value: Json) -> R_co:
        """Its result, from the JSON of it."""

    def named(self, name: str) -> Self:
        """The same with a name, for other members of its batch to refer to."""
        return replace(self, name=read_name("name", name))

    def after(self, *names: str, when: str | When = When.SUCCESS) -> Self:
        """The same, to start when the members of its batch with these names have ended `when`.
        Tasks that are no members are named in its options: `f.options(after=[handle]).s(…)`.
        """
        read = read_word(When, "when", when)
        more = tuple((read_name("after", name), read) for name in names)
        return replace(self, siblings=self.siblings + more)

    def submit(self) -> Handle[R_co]:
        """Submit all of it from sync code. When it returns, it is durable. Generators are gone
        through in this thread.
        """
        home = _home_of(self)
        if not isinstance(self, Composite) or not self.is_large:
            return home.wait_for(self.listed().submit_whole())
        slices = home.wait_for(home.verbs()).slices(self)
        added = home.wait_for(slices.begin())
        if added.created:
            try:
                for some in self.members.slices():
                    home.wait_for(slices.store(some))
            except BaseException:
                home.wait_for(slices.give_up())
                raise
            home.wait_for(slices.end())
        return self._handle(home, added)

    async def submit_async(self) -> Handle[R_co]:
        home = _home_of(self)
        if not isinstance(self, Composite) or not self.is_large:
            return await self.listed().submit_whole()
        slices = (await home.verbs()).slices(self)
        added = await slices.begin()
        if added.created:
            try:
                for some in self.members.slices():
                    await slices.store(some)
            except BaseException:
                await slices.give_up()
                raise
            await slices.end()
        return self._handle(home, added)

    def listed(self) -> Self:
        """The same with all that is below it at hand: no generator is left."""
        return self

    async def submit_whole(self) -> Handle[R_co]:
        """Submit what is small enough for one commit."""
        home = _home_of(self)
        (added,) = await (await home.verbs()).submit_parts([self])
        return self._handle(home, added)

    def _handle(self, home: Home, added: Added) -> Handle[R_co]:
        return Handle(home, added.task_id, lambda task: self.decode(task.value), added.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Composable[R_co]):
    """One task of a composition: `f.s(1)`, or `f.options(queue="mail").s(1)`. Arguments may be
    missing: a chain gives the result before in place of the first that is.
    """

    definition: Definition[..., R_co, Any]
    chosen: Options
    bound: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def home(self) -> Home:
        return self.definition.home

    @property
    def later(self) -> Mapping[str, ResultOf]:
        """Those of its arguments that are results to be."""
        return references_in(self.bound)

    def missing(self) -> str | None:
        """The first parameter that must be given and is not."""
        return self.definition.missing(self.bound)

    def call(self, later: Mapping[str, ResultOf]) -> Call[R_co]:
        """Check the arguments, but for those that come later."""
        return self.definition.make_later_call(self.bound, later, self.chosen)

    def decode(self, value: Json) -> R_co:
        return self.definition.load_result(orjson.dumps(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite(Composable[R_co]):
    """Tasks that are children of one: of `body`, or of a parent that only waits for them."""

    label: str
    members: Members = field(repr=False)
    said: Children
    body: Link[Any] | None = None
    chosen: Options = NO_OPTIONS
    passes_results: bool = False
    """Whether each member is given the result of the one before."""
    decoders: list[Composable[Any]] = field(default_factory=list, repr=False, compare=False)
    """The members as they were submitted, if their results are the result."""

    @property
    def home(self) -> Home | None:
        if self.body is not None:
            return self.body.home
        return self.members.first.home

    @property
    def is_large(self) -> bool:
        """Whether it is stored in slices."""
        return self.said.order is ChildOrder.PARALLEL and self.members.are_many

    def listed(self) -> Self:
        return replace(self, members=self.members.listed())

    def options(self, **options: Unpack[SubmitKeywords]) -> Self:
        """The same with options of the parent: `idempotency_key`, `owner`, `priority`, `tags`…
        When it may start (`after`, `delay`, `run_at`) and until when (`expires`) is said of all.
        """
        return replace(self, chosen=merged(self.chosen, read_options(options)))

    def decode(self, value: Json) -> R_co:
        one: Composable[Any] | None = self.body
        if one is None and self.said.result is ParentResult.LAST:
            one = self.decoders[-1]
        if one is not None:
            result: R_co = one.decode(value)
            return result
        many = self.decoders if len(self.decoders) > 1 else self.decoders * len(value)
        goes_on = self.said.on_failure is OnFailure.CONTINUE
        found: Any = [
            None if each is None and goes_on else member.decode(each)
            for member, each in zip(many, value, strict=True)
        ]
        return cast("R_co", found)


def _part(place: str, given: object) -> Composable[Any]:
    if not isinstance(given, Composable):
        raise InvalidOption(
            place, f"expected a link such as `f.s(1)` or a composition, got {given!r}"
        )
    return given


def _home_of(part: Composable[Any]) -> Home:
    home = part.home
    if home is None:
        raise InvalidOption("members", "nothing in it says which app it belongs to")
    return home
