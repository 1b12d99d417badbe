"""The definitions of one app, by name, and what surrounds them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from holdfast.core.gate import key_of, kind_of
from holdfast.core.scope import QUEUE, Scope
from holdfast.definitions.declaration import Declaration
from holdfast.definitions.definition import Definition
from holdfast.definitions.gate_makers import Makers, task_scope
from holdfast.definitions.middleware import Installed
from holdfast.errors import InvalidOption, UnknownTask

AnyDefinition = Definition[..., Any, Any]


class Registry(Mapping[str, AnyDefinition]):
    """Name → definition. `registry[name]` raises `UnknownTask` with the closest name there is."""

    def __init__(self) -> None:
        self._definitions: dict[str, AnyDefinition] = {}
        self.forgetful: set[str] = set()
        """Names of tasks that are not kept once they have succeeded."""
        self.coalesced: set[str] = set()
        """Names of tasks of which several submits become one."""
        self.batched: set[str] = set()
        """Names of tasks that are run many at a time."""
        self.middleware = Installed()
        self.queues: dict[str, Makers] = {}
        """Queues with limits of their own."""
        self.schedules: dict[str, Declaration] = {}
        """What `@app.schedule` declared, by name."""
        self.schedule_changed: list[Callable[[str, datetime | None], Awaitable[None]]] = []
        """Told of each schedule that is made, changed or deleted, and when it is due now."""
        self.default_agent: str | None = None
        """The agent that is given what people ask for, unless the setting `agent` names one."""
        self.check_channels: Callable[[str | None, Sequence[str]], Awaitable[object]] | None = None
        """Refuses channels by which nothing could be delivered to an owner."""
        self.breakers: dict[Scope, Makers] = {}
        """The breakers of definitions and queues, by whose they are; empty for nearly all apps."""

    def add(self, definition: AnyDefinition) -> None:
        """Take a definition in. The same function again (a reload, a notebook) replaces itself;
        another function under a taken name is refused, because stored tasks would change meaning.
        """
        known = self._definitions.get(definition.name)
        if known is not None and _origin(known) != _origin(definition):
            raise InvalidOption(
                "name",
                f"two functions would be task {definition.name!r}: {'.'.join(_origin(known))} and "
                f"{'.'.join(_origin(definition))}. Give one of them another `name=`.",
            )
        self._definitions[definition.name] = definition
        _note(self.forgetful, definition.name, is_one=not definition.keep)
        _note(self.batched, definition.name, is_one=definition.batch is not None)
        _note(self.coalesced, definition.name, is_one=definition.coalescing is not None)
        self._watch(task_scope(definition.name), definition.limits)

    def set_queue(self, queue: str, makers: Makers) -> None:
        """What bounds a queue, from now on."""
        self.queues[queue] = makers
        self._watch(Scope(QUEUE, queue), makers)

    def has_limit(self, name: str) -> bool:
        """Whether a definition or a queue has a limit of this name."""
        scope = Scope.parse(key_of(name))
        whose, is_keyed = scope._replace(key=None), scope.key is not None
        every = [*(d.limits for d in self._definitions.values()), *self.queues.values()]
        return any(
            (maker.kind, maker.scope, maker.make_key is not None)
            == (kind_of(name), whose, is_keyed)
            for makers in every
            for maker in makers
        )

    def _watch(self, scope: Scope, makers: Makers) -> None:
        breakers = tuple(maker for maker in makers if maker.rule is not None)
        if breakers:
            self.breakers[scope] = breakers
        else:
            self.breakers.pop(scope, None)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._definitions))

    def full_name(self, name: str) -> str:
        """The known name that this is, or is the end of (`mail` of `shop.orders.mail`); otherwise
        what was given. `InvalidOption` if it is the end of several.
        """
        ends = [name] if name in self else [one for one in self.names() if one.endswith("." + name)]
        if len(ends) > 1:
            raise InvalidOption(
                "name", f"{name!r} is the end of {', '.join(ends)}; give the whole name"
            )
        return ends[0] if ends else name

    def suggest(self, name: str) -> str | None:
        """The known name that is closest to this one, if any is close; `mial` finds `app.mail`."""
        spellings = {known.rpartition(".")[2]: known for known in self._definitions}
        spellings |= {known: known for known in self._definitions}
        close = get_close_matches(name, spellings, n=1)
        return spellings[close[0]] if close else None

    def __getitem__(self, name: str) -> AnyDefinition:
        try:
            return self._definitions[name]
        except KeyError:
            raise UnknownTask(name, suggestion=self.suggest(name)) from None

    def __contains__(self, name: object) -> bool:
        # Not left to Mapping: it expects a KeyError, and ours is an `UnknownTask`.
        return name in self._definitions

    def get(self, name: str, default: Any = None) -> Any:
        return self._definitions.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)


def _note(names: set[str], name: str, *, is_one: bool) -> None:
    (names.add if is_one else names.discard)(name)


def _origin(definition: AnyDefinition) -> tuple[str, str]:
    return definition.handler.__module__, definition.handler.__qualname__
