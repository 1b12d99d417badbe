"""Work made of work: links, and what they are put together to.

    chain(fetch.s(url), parse.s(), store.s(table="pages")).submit().result()
    group(resize.s(name) for name in names).submit()
    chord(count.map(pages), total.s()).submit()
    batch(None, {"a": a.s(), "b": b.s(result_of("a")), "c": c.s().after("a")}).submit()

A part of one may be another one. Nothing is checked or stored before `submit()`, which stores all
of it in one commit, or nothing (`flow.submitting`); what comes out is a handle on the whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace
from itertools import chain as _joined
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, cast, overload

import orjson

from holdfast.core.flow import Body, ChildOrder, Children, OnFailure, ParentResult, When
from holdfast.core.task import Json
from holdfast.definitions.call import Call
from holdfast.definitions.handle import Handle
from holdfast.definitions.options import NO_OPTIONS, Options, SubmitKeywords, merged, read_options
from holdfast.definitions.readers import read_name, read_word
from holdfast.definitions.references import ResultOf, references_in
from holdfast.errors import InvalidOption

if TYPE_CHECKING:
    from holdfast.definitions.definition import Definition
    from holdfast.definitions.home import Home

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Members:
    """The members of a composition: a list, or what can be gone through once. None is looked at
    but the `first`, until they are stored.
    """

    __slots__ = ("_all", "first", "known")

    def __init__(self, label: str, given: Iterable[Any]) -> None:
        many = iter(given)
        first = next(many, None)
        if first is None:
            raise InvalidOption(
                label, f"a {label} of nothing has nothing to do: give it one member at least"
            )
        self.known = len(given) if isinstance(given, Sized) else None
        """How many they are, if that is known before."""
        self.first = _part(f"{label}[0]", first)
        self._all: Iterable[Any] = given if self.known is not None else _joined([first], many)
        if isinstance(given, list | tuple):
            for n, each in enumerate(given):
                _part(f"{label}[{n}]", each)

    def put_back(self, some: Iterable[Any], rest: Iterable[Any]) -> None:
        """These come first again, then the rest: they were only counted."""
        self._all = _joined(some, rest)

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
        """Submit all of it from sync code. When it returns, it is durable."""
        home = _home_of(self)
        return home.wait_for(self.submit_async())

    async def submit_async(self) -> Handle[R_co]:
        home = _home_of(self)
        (added,) = await (await home.verbs()).submit_parts([self])
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


A = Composable[Any]


@overload
def chain(first: Composable[R], /) -> Composite[R]: ...
@overload
def chain(_1: A, last: Composable[R], /) -> Composite[R]: ...
@overload
def chain(_1: A, _2: A, last: Composable[R], /) -> Composite[R]: ...
@overload
def chain(_1: A, _2: A, _3: A, last: Composable[R], /) -> Composite[R]: ...
@overload
def chain(_1: A, _2: A, _3: A, _4: A, last: Composable[R], /) -> Composite[R]: ...
@overload
def chain(_1: A, _2: A, _3: A, _4: A, _5: A, last: Composable[R], /) -> Composite[R]: ...
@overload
def chain(*links: A) -> Composite[Any]: ...


def chain(*links: A) -> Composite[Any]:
    """One after another: each link is given the result of the one before in place of the first
    argument that it lacks, and the result of the last is that of the chain. When a link does not
    complete, those behind it are cancelled (`dependency_failed`) and the chain has failed.
    """
    said = Children(Body.NONE, ChildOrder.SEQUENCE, OnFailure.CANCEL_REST, ParentResult.LAST)
    return Composite(label="chain", members=Members("chain", links), said=said, passes_results=True)


@overload
def group(*members: Composable[R], on_failure: str | OnFailure = ...) -> Composite[list[R]]: ...
@overload
def group(
    members: Iterable[Composable[R]], /, *, on_failure: str | OnFailure = ...
) -> Composite[list[R]]: ...


def group(*members: Any, on_failure: str | OnFailure = OnFailure.FAIL_PARENT) -> Composite[Any]:
    """Side by side; the result is the list of the results, in this order. Members may come from a
    generator: more than 1,000 are stored in slices, in bounded memory.
    """
    policy = read_word(OnFailure, "on_failure", on_failure)
    said = Children(Body.NONE, ChildOrder.PARALLEL, policy, ParentResult.ALL)
    return Composite(label="group", members=_members("group", members), said=said)


def chord(header: Composite[Any] | Iterable[Composable[Any]], callback: Link[R]) -> Composite[R]:
    """A group, and a task that runs when all of it has completed: it is given the list of the
    results in place of the first argument that it lacks. Its result is that of the chord.
    """
    if not isinstance(callback, Link):
        raise InvalidOption("callback", f"expected a link such as `total.s()`, got {callback!r}")
    policy, members = OnFailure.FAIL_PARENT, _members("chord", (header,))
    if isinstance(header, Composite) and header.label == "group":
        policy, members = header.said.on_failure, header.members
    said = Children(Body.AFTER, ChildOrder.PARALLEL, policy)
    return Composite(label="chord", members=members, said=said, body=callback)


@overload
def batch(
    parent: Link[R],
    children: Mapping[str, A] | Iterable[A],
    *,
    order: str | ChildOrder = ...,
    on_failure: str | OnFailure = ...,
    body: str | Body | None = ...,
) -> Composite[R]: ...
@overload
def batch(
    parent: None,
    children: Mapping[str, A] | Iterable[A],
    *,
    order: str | ChildOrder = ...,
    on_failure: str | OnFailure = ...,
    body: str | Body | None = ...,
) -> Composite[list[Any]]: ...


def batch(
    parent: Link[Any] | None,
    children: Mapping[str, A] | Iterable[A],
    *,
    order: str | ChildOrder = ChildOrder.PARALLEL,
    on_failure: str | OnFailure = OnFailure.FAIL_PARENT,
    body: str | Body | None = None,
) -> Composite[Any]:
    """A parent and its children. The parent ends when the last of them has.

    Args:
        parent: its task, run `before` its children or `after` them (given the list of their
            results in place of the first argument that it lacks); None for one that only waits.
        children: what is to be done; a mapping gives them names, for `after` and `result_of`.
        order: `parallel`, or `sequence`: one after another.
        on_failure: if a child does not complete, the parent fails when all have ended
            (`fail_parent`), completes all the same (`continue`), or fails and the other children
            are cancelled (`cancel_rest`).
        body: when the parent's task runs: `after` unless told otherwise.
    """
    if parent is not None and not isinstance(parent, Link):
        raise InvalidOption("parent", f"expected a link such as `f.s(1)` or None, got {parent!r}")
    chosen = Body.NONE if parent is None else Body.AFTER
    if body is not None:
        chosen = read_word(Body, "body", body)
    if (parent is None) is not (chosen is Body.NONE):
        raise InvalidOption(
            "body",
            "a parent without a task has no body; leave it out"
            if parent is None
            else "expected before or after: this parent has a task. Give None for one without",
        )
    said = Children(
        chosen,
        read_word(ChildOrder, "order", order),
        read_word(OnFailure, "on_failure", on_failure),
    )
    if isinstance(children, Mapping):
        children = [child.named(name) for name, child in children.items()]
    return Composite(label="batch", members=_members("batch", (children,)), said=said, body=parent)


def _members(label: str, given: tuple[Any, ...]) -> Members:
    """The members as they were given: one by one, or as something to be gone through."""
    if len(given) == 1 and isinstance(given[0], Iterable) and not isinstance(given[0], str | bytes):
        return Members(label, given[0])
    return Members(label, given)


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
