"""Work made of work:

    chain(fetch.s(url), parse.s(), store.s(table="pages")).submit().result()
    group(resize.s(name) for name in names).submit()
    chord(count.map(pages), total.s()).submit()
    batch(None, {"a": a.s(), "b": b.s(result_of("a")), "c": c.s().after("a")}).submit()

A part of one may be another one. What `submit()` gives is a handle on the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from holdfast.core.flow import Body, ChildOrder, Children, OnFailure, ParentResult
from holdfast.definitions.composing import Composable, Composite, Link, Members
from holdfast.definitions.readers import read_word
from holdfast.errors import InvalidOption

R = TypeVar("R")
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
