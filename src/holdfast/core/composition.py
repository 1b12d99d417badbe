"""Compositions: many new tasks that wait for each other, and how each is told so.

A planner says in `Place`s, by number, which task of a composition is whose child, what it comes
after and whose results it takes. `wired` turns that into what stores know, gates and latches, and
into what a payload says (`flow`). Ids are made before, in the order of the numbers: what another
one waits for has the smaller number, but for a parent whose body runs before its children.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from holdfast.core.flow import (
    Body,
    ChildOrder,
    Children,
    Dependency,
    Flow,
    OnFailure,
    ResultRef,
    Source,
    When,
    body_latch,
    children_latch,
    flow_of,
    with_flow,
)
from holdfast.core.gate import Count, Gate, GateKind, gate_name
from holdfast.core.task import NewTask, TaskId
from holdfast.core.trace import traceparent_of
from holdfast.errors import InvalidOption

MOST_AT_ONCE: Final = 10_000
"""Tasks of one commit: more would hold up others for too long."""


class Taken(NamedTuple):
    """Whose results a parameter takes, by number."""

    source: Source
    numbers: tuple[int, ...]


class Place(NamedTuple):
    """What a task of a composition has to do with the others, by their numbers. `tasks` are those
    that it comes after and that exist already; `size` is how many children it has.
    """

    parent: int | None = None
    after: tuple[tuple[int, When], ...] = ()
    tasks: tuple[Dependency, ...] = ()
    results: Mapping[str, Taken] = MappingProxyType({})
    children: Children | None = None
    size: int = 0


class Parent:
    """A parent, as its children are told of it. That of a large group is stored before them."""

    __slots__ = ("id", "is_first", "latch", "rest_of", "trace")

    def __init__(self, parent_id: TaskId, said: Children, trace: str | None = None) -> None:
        self.id = parent_id
        self.latch = gate_name(GateKind.LATCH, children_latch(parent_id))
        self.trace = traceparent_of(parent_id, trace)
        self.is_first = said.body is Body.BEFORE
        """Whether its body runs before its children."""
        # In a sequence nobody need ask whether another child has failed: each comes after the one
        # before, if that went well.
        parallel = said.order is ChildOrder.PARALLEL
        self.rest_of = parent_id if parallel and said.on_failure is OnFailure.CANCEL_REST else None


class Wired(NamedTuple):
    """The tasks as they are to be stored, and the latches to be made with them."""

    tasks: list[NewTask]
    counts: list[Count]


def wired(tasks: Sequence[NewTask], places: Sequence[Place], under: Parent | None = None) -> Wired:
    """Tie the tasks of a composition together; those without a parent are children of `under`, if
    that is given.
    """
    tied = list(tasks)
    counts: list[Count] = []
    ids = [task.id for task in tasks]
    parents: dict[int | None, Parent | None] = {None: under}
    for number in _from_above(places):
        place = places[number]
        task = tied[number] = _tied(tied[number], place, parents[place.parent], ids)
        if place.children is not None:
            parents[number] = Parent(task.id, place.children, task.trace)
            counts += latches_of(task.id, place.children, place.size)
    return Wired(tied, counts)


def _from_above(places: Sequence[Place]) -> Iterator[int]:
    """The numbers, parents before their children."""
    below: dict[int | None, list[int]] = {}
    for number, place in enumerate(places):
        below.setdefault(place.parent, []).append(number)
    level = below.get(None, [])
    while level:
        yield from level
        level = [child for number in level for child in below.get(number, ())]


def latches_of(parent_id: TaskId, said: Children, size: int) -> list[Count]:
    """The latches of a parent with so many children."""
    counts = [Count(gate_name(GateKind.LATCH, children_latch(parent_id)), size)]
    if said.body is Body.BEFORE:
        counts.append(Count(gate_name(GateKind.LATCH, body_latch(parent_id)), 1))
    return counts


def _tied(task: NewTask, place: Place, parent: Parent | None, ids: Sequence[TaskId]) -> NewTask:
    if parent is not None:
        counts = (*task.counts, parent.latch)
        trace = task.trace or parent.trace
        task = task._replace(parent_id=parent.id, counts=counts, trace=trace)
    if _is_alone(place) and (parent is None or not (parent.is_first or parent.rest_of)):
        return task
    said = flow_of(task.payload) or Flow()
    after = tuple(Dependency(ids[number], when) for number, when in place.after) + place.tasks
    results = {
        name: ResultRef(taken.source, tuple(ids[number] for number in taken.numbers))
        for name, taken in place.results.items()
    }
    flow = replace(
        said,
        after=(*said.after, *after),
        results={**said.results, **results},
        children=place.children,
        rest_of=None if parent is None else parent.rest_of,
        body_of=parent.id if parent is not None and parent.is_first else None,
    )
    behind: list[str] = [each.task_id for each in after]
    counts = task.counts
    if place.children is not None:
        if place.children.body is Body.BEFORE:
            counts = (*counts, gate_name(GateKind.LATCH, body_latch(task.id)))
        else:
            behind.append(children_latch(task.id))
    if parent is not None and parent.is_first:
        behind.append(body_latch(parent.id))
    gates = [*task.gates, *(Gate(GateKind.LATCH, key) for key in behind)]
    return task._replace(
        payload=with_flow(task.payload, flow), gates=tuple(dict.fromkeys(gates)), counts=counts
    )


def _is_alone(place: Place) -> bool:
    """Whether it has nothing to do with others but for its parent: nearly all of a large group."""
    return not (place.after or place.tasks or place.results) and place.children is None


def in_order(names: Sequence[str], before: Sequence[Collection[int]]) -> list[int]:
    """The numbers of these, each after those that it comes after, else as they are.

    `InvalidOption` names the first circle: nothing in it could ever start.
    """
    ordered: list[int] = []
    done: set[int] = set()

    for start in range(len(names)):
        # Not by recursion: a sequence may be as long as a commit.
        way: list[int] = [start]
        while way:
            number = way[-1]
            if number in done:
                way.pop()
                continue
            waits = [other for other in sorted(before[number]) if other not in done]
            if not waits:
                done.add(number)
                ordered.append(number)
                way.pop()
            elif waits[0] in way:
                _refuse_circle([names[each] for each in way[way.index(waits[0]) :]])
            else:
                way.append(waits[0])
    return ordered


def _refuse_circle(circle: Sequence[str]) -> None:
    said = " -> ".join([*circle, circle[0]])
    raise InvalidOption(
        "after",
        f"these wait for each other in a circle, so none of them could start: {said}. Nothing was "
        "submitted.",
    )
