"""What limits, rates, shares and breakers are called: by whose they are, and by key.

    task:send            of one definition, whatever the arguments
    task:send[acme]      the same for one key
    queue:mail[acme]     of a queue, whatever the task
    stripe               one with a name of its own, which several definitions may share

The name of the gate has its kind before that: `limit:task:send[acme]`. That is the name by which an
operator sets it. Names of tasks and queues hold no blank and, if they have limits, no `[`; a name
of one's own holds no `:` either, so no two of different owners are alike.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.core.gate import GateKind, key_of, kind_of

TASK: Final = "task"
QUEUE: Final = "queue"
KINDS: Final = (GateKind.BREAKER, GateKind.LIMIT, GateKind.RATE, GateKind.SHARE)
"""The kinds that people set and look at, in the order of their names."""
LOOKED_AT: Final = (GateKind.BREAKER, GateKind.LIMIT, GateKind.LOCK, GateKind.RATE, GateKind.SHARE)
"""The same with locks, which nobody sets."""


class Scope(NamedTuple):
    """Whose a gate is: `of` is `task`, `queue`, or empty for one with a name of its own."""

    of: str
    name: str
    key: str | None = None

    def __str__(self) -> str:
        whose = f"{self.of}:{self.name}" if self.of else self.name
        return whose if self.key is None else f"{whose}[{self.key}]"

    @classmethod
    def parse(cls, text: str) -> Scope:
        """What `str` wrote."""
        whose, bracket, rest = text.partition("[")
        key = rest[:-1] if bracket and rest.endswith("]") else None
        if key is None:
            whose = text
        of, colon, name = whose.partition(":")
        return cls(of, name, key) if colon and of in {TASK, QUEUE} else cls("", whose, key)


def in_words(gate: str) -> str:
    """A gate for people: `limit of task 'send' for 'acme'`."""
    scope = Scope.parse(key_of(gate))
    whose = f"of {scope.of} {scope.name!r}" if scope.of else repr(scope.name)
    return f"{kind_of(gate)} {whose}" + ("" if scope.key is None else f" for {scope.key!r}")


def is_lock(gate: str) -> bool:
    """Whether this can be the name of a lock's gate."""
    kind, _, key = gate.partition(":")
    return kind == GateKind.LOCK and bool(key)


def is_limit(gate: str) -> bool:
    """Whether this can be the name of something that people set."""
    kind, _, key = gate.partition(":")
    return kind in KINDS and bool(key)
