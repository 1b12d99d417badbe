"""Steps: what the journal of a task says, and whether an attempt goes the way of those before it.

An entry is a name and a JSON array, `[number, label, value]`. The number is the place of a step
among those that the handler calls one after another, from 1; None for one that runs beside others,
where nobody can say which comes first. The label is what stands at that place, where it is not the
name: all steps of one `map` stand at the place of the map. Sleeps and waits are entries too, under
names that no step can have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from holdfast.core.payload import check_text
from holdfast.core.task import Json
from holdfast.errors import NonDeterministic, StepRefused

RESERVED: Final = "$"
"""How no step's name may begin."""
SLEEP: Final = "$sleep:"
WAIT: Final = "$wait:"
AWAITED: Final = "$awaited:"
"""What a worker over HTTP waits for; whoever hands the task out again looks whether it has come."""
LONGEST_NAME: Final = 200


class Place(NamedTuple):
    """Where a step stands: its number if it has one, and what is said to stand there."""

    number: int | None
    label: str


def entry(place: Place, name: str, value: bytes) -> bytes:
    """What the journal keeps of a step; `value` is JSON."""
    if place.label == name and place.number is not None:
        return b"[%d,null,%s]" % (place.number, value)  # nearly all of them
    label = None if place.label == name else place.label
    return b"[%s,%s,%s]" % (json.dumps(place.number).encode(), json.dumps(label).encode(), value)


class Journal:
    """What earlier attempts recorded."""

    def __init__(self, entries: Mapping[str, bytes]) -> None:
        self._values: dict[str, Json] = {}
        self._numbers: dict[str, int] = {}
        self._labels: dict[int, str] = {}
        for name, raw in entries.items():
            number, label, self._values[name] = json.loads(raw)
            if number is not None:
                self._numbers[name] = number
                self._labels[number] = label or name

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Json:
        return self._values[name]

    def check(self, name: str, place: Place) -> None:
        """`NonDeterministic` if something else was recorded at this place, or this at another."""
        if place.number is None:
            return
        there = self._labels.get(place.number, place.label)
        if there != place.label:
            raise NonDeterministic(place.number, shown(place.label), shown(there))
        before = self._numbers.get(name, place.number)
        if before != place.number:
            raise NonDeterministic(place.number, shown(place.label), None, before)


NOTHING: Final = Journal({})
"""The journal of a first attempt."""


def read_step_name(name: object) -> str:
    """`StepRefused` for what is no name of a step."""
    if not isinstance(name, str) or not name:
        raise StepRefused(f"a step's name is text, got {name!r}: `ctx.step('charge', charge, …)`.")
    check_text(name, "step name")
    if len(name) > LONGEST_NAME or name.startswith(RESERVED):
        raise StepRefused(
            f"a step's name has at most {LONGEST_NAME} characters and does not begin with "
            f"{RESERVED!r}, got {name[:60]!r}."
        )
    return name


def shown(name: str) -> str:
    """An entry's name as a reader of the handler knows it."""
    if name.startswith(SLEEP):
        return f"sleep {name.removeprefix(SLEEP)}"
    if name.startswith(WAIT):
        event, _, key = name.removeprefix(WAIT).partition(" ")
        return f"wait_for {event!r} with key {key!r}"
    return f"step {name!r}"


def sleep_value(until: datetime) -> bytes:
    """What is recorded of a sleep."""
    return json.dumps(until.isoformat()).encode()


def slept_until(value: Json) -> datetime:
    return datetime.fromisoformat(value)
