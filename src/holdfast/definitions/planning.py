"""From compositions to what is stored: a call for every task, and its place among the others.

Everything that can be wrong with a composition shows here, before anything is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from holdfast.codec import digest
from holdfast.core.composition import MOST_AT_ONCE, Place, Taken, in_order
from holdfast.core.flow import (
    BATCH,
    DEEPEST,
    Body,
    ChildOrder,
    Children,
    Dependency,
    OnFailure,
    ParentResult,
    Source,
    When,
)
from holdfast.core.task import TaskId
from holdfast.definitions.call import Call
from holdfast.definitions.composing import Composable, Composite, Link
from holdfast.definitions.definition import Definition
from holdfast.definitions.open import OpenDefinition
from holdfast.definitions.options import NO_OPTIONS, Options, merged
from holdfast.definitions.references import ResultOf
from holdfast.errors import InvalidArguments, InvalidOption

Waits = Mapping["_Slot | TaskId", When]
"""What comes before: others of the composition, and tasks that exist."""


class Plan(NamedTuple):
    """The tasks of compositions, in the order of their ids; the numbers of the outermost, and of
    the first of each.
    """

    calls: list[Call[Any]]
    places: list[Place]
    roots: list[int]
    firsts: list[int]


class Bodyless(OpenDefinition):
    """What stands in for the definition of a parent that only waits for its children."""

    def __init__(self) -> None:
        super().__init__(BATCH)
        self.requires = frozenset()


BODYLESS = Bodyless()


class Incoming(NamedTuple):
    """A result that a chain passes on."""

    source: Source
    slot: _Slot


@dataclass(slots=True, eq=False)
class _Slot:
    """A task before it has its number."""

    parent: _Slot | None
    children: Children | None = None
    size: int = 0
    call: Call[Any] | None = None
    after: dict[_Slot | TaskId, When] = field(default_factory=dict)
    results: dict[str, tuple[Source, tuple[_Slot, ...]]] = field(default_factory=dict)
    number: int = -1

    def take(self, name: str, source: Source, *slots: _Slot) -> None:
        """Give a parameter the results of these, which must have completed, or of its children."""
        self.results[name] = (source, slots)
        self.after |= {each: When.SUCCESS for each in slots if each is not self}


def planned(roots: Iterable[Composable[Any]], level: int = 0) -> Plan:
    """The plan of these; `InvalidOption` or `InvalidArguments` for what can never run. `level` is
    that of the roots.
    """
    planner = _Planner()
    slots, firsts = [], []
    for root in roots:
        firsts.append(len(planner.slots))
        slots.append(planner.add(root, None, level))
    return Plan(
        [each.call for each in planner.slots if each.call is not None],
        [_place(each) for each in planner.slots],
        [slot.number for slot in slots],
        firsts,
    )


def planned_parent(root: Composite[Any]) -> Plan:
    """The parent alone of a group that is too large for one plan, with one child more than it has:
    whoever stores the last of them counts that down.
    """
    _refuse_options(root, is_root=True)
    first = root.members.first
    while isinstance(first, Composite):
        first = first.members.first if first.body is None else first.body
    assert isinstance(first, Link)
    slot = _Slot(None, root.said, size=1)
    call = _parent_call(root, slot, first.definition, first.chosen)
    slot.number = 0
    return Plan([call], [_place(slot)], [0], [0])


def fingerprint(plan: Plan, root: int) -> str:
    """Equal for equal compositions: what an idempotency key stands for."""
    at = plan.roots.index(root)
    first, *others = plan.firsts[at : at + 2]
    end = others[0] if others else len(plan.calls)
    told = [
        [call.definition.name, call.payload.decode(), str(call.waits_for), str(call.results), place]
        for call, place in zip(
            plan.calls[first:end],
            (str(_moved(place, first)) for place in plan.places[first:end]),
            strict=True,
        )
    ]
    return digest("composition", told)


def _moved(place: Place, by: int) -> Place:
    """The place in a plan of its own."""
    return place._replace(
        parent=None if place.parent is None else place.parent - by,
        after=tuple((number - by, when) for number, when in place.after),
        results={
            name: Taken(source, tuple(number - by for number in numbers))
            for name, (source, numbers) in place.results.items()
        },
    )


class _Planner:
    """Gives every task its number."""

    def __init__(self) -> None:
        self.slots: list[_Slot] = []
        self._times = [NO_OPTIONS]
        """When those that are being added may start, as the compositions around them say."""

    def add(
        self,
        part: Composable[Any],
        parent: _Slot | None,
        level: int,
        waits: Waits = MappingProxyType({}),
        incoming: Incoming | None = None,
    ) -> _Slot:
        """A part and all below it, behind `waits`."""
        if level > DEEPEST:
            raise InvalidOption(
                "children",
                f"nested deeper than {DEEPEST} levels of children below children; make it flatter",
            )
        if isinstance(part, Composite):
            return self._composite(part, parent, level, waits, incoming)
        assert isinstance(part, Link)
        slot = _Slot(parent, after={**waits})
        if parent is not None:
            _refuse_options(part, is_root=False)
        slot.call = _link_call(part, slot, incoming)
        return self._numbered(slot)

    def _composite(
        self,
        part: Composite[Any],
        parent: _Slot | None,
        level: int,
        waits: Waits,
        incoming: Incoming | None,
    ) -> _Slot:
        _refuse_options(part, is_root=parent is None)
        waits = {**waits, **dict.fromkeys(part.chosen.after, part.chosen.when)}
        slot = _Slot(parent, part.said, after=waits)
        own = NO_OPTIONS if part.chosen is NO_OPTIONS else _without_after(times_of(part.chosen))
        self._times.append(merged(self._times[-1], own))
        if part.said.body is Body.BEFORE:
            assert part.body is not None
            slot.call = _link_call(part.body, slot, incoming, part.chosen)
            self._numbered(slot)
            self._members(part, slot, level, {}, None)  # they stand behind the body
            self._times.pop()
            return slot
        first = self._members(part, slot, level, waits, incoming)
        self._times.pop()
        slot.call = _parent_call(part, slot, first.definition, first.options)
        return self._numbered(slot)

    def _members(
        self,
        part: Composite[Any],
        parent: _Slot,
        level: int,
        waits: Waits,
        incoming: Incoming | None,
    ) -> Call[Any]:
        """All members, behind `waits`; the call of the first."""
        members = _taken(part)
        siblings = _Siblings(part, members)
        parent.size = len(members)
        slots: dict[int, _Slot] = {}
        in_sequence = part.said.order is ChildOrder.SEQUENCE
        stops = part.said.on_failure is OnFailure.CANCEL_REST
        for number in siblings.order:
            member = members[number]
            own: Waits = {slots[other]: when for other, when in siblings.before[number].items()}
            # The first of a sequence that stops at a failure keeps the rest; else each must look.
            inherited = waits if number == 0 or not (in_sequence and stops) else {}
            passed = incoming if number == 0 or not in_sequence else None
            if part.passes_results and number > 0:
                before = members[number - 1]
                passed = Incoming(_source_of(before), slots[number - 1])
            slot = self.add(member, parent, level + 1, {**inherited, **own}, passed)
            for name, ref in siblings.results[number].items():
                slot.take(
                    name, ref.source, *(slots[siblings.numbers[each]] for each in ref.targets)
                )
            slots[number] = slot
        if part.body is None:
            part.decoders[:] = [members[number] for number in siblings.order]
        first = slots[0].call
        assert first is not None
        return first

    def _numbered(self, slot: _Slot) -> _Slot:
        assert slot.call is not None
        if self._times[-1] is not NO_OPTIONS:
            options = merged(self._times[-1], slot.call.options)
            slot.call = replace(slot.call, options=options)
        slot.number = len(self.slots)
        self.slots.append(slot)
        if len(self.slots) > MOST_AT_ONCE:
            raise InvalidOption(
                "members",
                f"more than {MOST_AT_ONCE:,} tasks would have to be stored at once. Only the "
                "outermost group, and what it is the header of, may be larger",
            )
        return slot


class _Siblings:
    """The members of one composition: their names, and what comes before what."""

    def __init__(self, part: Composite[Any], members: Sequence[Composable[Any]]) -> None:
        self.numbers: dict[str, int] = {}
        for n, member in enumerate(members):
            if member.name is not None and member.name in self.numbers:
                raise InvalidOption("name", f"two members are called {member.name!r}; rename one")
            if member.name is not None:
                self.numbers[member.name] = n
        in_sequence = part.said.order is ChildOrder.SEQUENCE
        stops = part.said.on_failure is OnFailure.CANCEL_REST
        self.results: list[dict[str, ResultOf]] = []
        self.before: list[dict[int, When]] = []
        for n, member in enumerate(members):
            before: dict[int, When] = {}
            if in_sequence and n > 0:
                before[n - 1] = When.SUCCESS if stops else When.ALWAYS
            before |= {self._number(name): when for name, when in member.siblings}
            link = member.body if isinstance(member, Composite) else member
            later = link.later if isinstance(link, Link) else {}
            named = {name: ref for name, ref in later.items() if ref.is_by_name and ref.targets}
            before |= {
                self._number(name): When.SUCCESS for ref in named.values() for name in ref.targets
            }
            self.results.append(named)
            self.before.append(before)

        self._members = members

    @cached_property
    def order(self) -> Sequence[int]:
        """The numbers of the members, each after those that it comes after."""
        if all(other < n for n, before in enumerate(self.before) for other in before):
            return range(len(self._members))
        names = [each.name or f"member {n}" for n, each in enumerate(self._members)]
        return in_order(names, self.before)

    def _number(self, name: str) -> int:
        number = self.numbers.get(name)
        if number is None:
            listed = ", ".join(map(repr, self.numbers)) or "none has a name"
            raise InvalidOption(
                "after", f"no member of this composition is called {name!r}. There are: {listed}"
            )
        return number


def _taken(part: Composite[Any]) -> list[Composable[Any]]:
    members = []
    for member in part.members:
        members.append(member)
        if len(members) > MOST_AT_ONCE:
            break  # the planner says what is wrong with that
    return members


def _place(slot: _Slot) -> Place:
    if not slot.after and not slot.results and slot.children is None:
        return Place(None if slot.parent is None else slot.parent.number)
    return Place(
        parent=None if slot.parent is None else slot.parent.number,
        after=tuple((at.number, when) for at, when in slot.after.items() if isinstance(at, _Slot)),
        tasks=tuple(
            Dependency(at, when) for at, when in slot.after.items() if not isinstance(at, _Slot)
        ),
        results={
            name: Taken(source, tuple(each.number for each in slots))
            for name, (source, slots) in slot.results.items()
        },
        children=slot.children,
        size=slot.size,
    )


def _parent_call(
    part: Composite[Any],
    slot: _Slot,
    first: Definition[..., Any, Any],
    options: Options,
) -> Call[Any]:
    """The call of a parent: its body's, or of one that only waits, where its first child is."""
    if part.body is not None:
        return _link_call(part.body, slot, Incoming(Source.CHILDREN, slot), part.chosen)
    chosen = replace(
        _without_after(part.chosen),
        queue=part.chosen.queue or options.queue or first.queue,
        priority=part.chosen.priority or options.priority or first.priority,
        owner=part.chosen.owner or options.owner,
    )
    return Call(BODYLESS, b"{}", chosen, None, None, None)


def _link_call(
    link: Link[Any], slot: _Slot, incoming: Incoming | None, over: Options = NO_OPTIONS
) -> Call[Any]:
    if over is not NO_OPTIONS:
        link = replace(link, chosen=merged(link.chosen, _without_after(over)))
    later = dict(link.later)
    if slot.parent is None:
        _refuse_names(later)
    for name, ref in later.items():
        if ref.is_by_name and not ref.targets:
            slot.take(name, ref.source, slot)  # those of its own children
    lacks = None if incoming is None else link.missing()
    if incoming is not None and lacks is not None:
        later[lacks] = ResultOf(incoming.source, (), is_by_name=True)
        slot.take(lacks, incoming.source, incoming.slot)
    return link.call(later)


def _refuse_names(later: Mapping[str, ResultOf]) -> None:
    for name, ref in later.items():
        if ref.is_by_name and ref.targets:
            raise InvalidArguments(
                f"{name}: result_of({ref.targets[0]!r}) names a member of a composition, and this "
                "is no member of one. Nothing was submitted.",
                problems=((name, "names a member, and there are none"),),
            )


def _refuse_options(part: Composable[Any], *, is_root: bool) -> None:
    """Refuse what would leave a hole: a key that may lead to another task, an end that is not
    kept.
    """
    link = part.body if isinstance(part, Composite) else part
    options = [part.chosen] if isinstance(part, Composite) else []
    options += [link.chosen] if isinstance(link, Link) else []
    for name in ("unique_key", "connection") + (() if is_root else ("idempotency_key",)):
        if any(getattr(each, name) is not None for each in options):
            raise InvalidOption(name, _WHY_NOT[name])
    if not isinstance(link, Link):
        return
    if link.definition.unique:
        raise InvalidOption("unique", f"of task {link.definition.name!r}: {_WHY_NOT['unique_key']}")
    if not link.definition.keep:
        raise InvalidOption(
            "keep",
            f"task {link.definition.name!r} is forgotten once it has succeeded (`keep=False`), and "
            "others of the composition would look for its result",
        )


_WHY_NOT: Final = {
    "unique_key": "cannot be had in a composition: if the key led to a task that exists, the "
    "others would wait for one that is none of theirs. Submit it alone, or give the composition "
    "an `idempotency_key`",
    "idempotency_key": "belongs to the composition, not to a member: if the key led to a task that "
    "exists, the others would wait for one that is none of theirs. Give it with "
    "`.options(idempotency_key=…)` to the outermost",
    "connection": "a composition is stored by itself and cannot be part of your transaction. "
    "Submit one task through your connection, and let that submit the rest",
}


def _source_of(part: Composable[Any]) -> Source:
    """How the result of a part is taken: of a group, from its members."""
    if isinstance(part, Composite) and part.body is None and part.said.result is ParentResult.ALL:
        return Source.CHILDREN
    return Source.ONE


def times_of(options: Options) -> Options:
    """What options say of when to start, and until when."""
    return Options(**{name: getattr(options, name) for name in _TIMES})


def without_times(options: Options) -> Options:
    """What they say beside."""
    return replace(options, **{name: getattr(NO_OPTIONS, name) for name in _TIMES})


def _without_after(options: Options) -> Options:
    """Its place says it, as it does of the members."""
    return replace(options, after=(), when=When.SUCCESS)


_TIMES: Final = ("delay", "run_at", "expires_in", "expires_at", "after", "when")
