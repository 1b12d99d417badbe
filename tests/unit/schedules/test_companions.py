"""What goes with schedules is written in the same commit as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.schedules.conftest import Place

from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import NewTask, State, TaskId
from holdfast.errors import InvalidOption
from holdfast.schedules.firing import Firer
from holdfast.schedules.series import Series

HOUR = timedelta(hours=1)


class Teller:
    """A companion that submits `told` behind each run, and `changed` with each change."""

    def __init__(self) -> None:
        self.number = 0

    def with_run(self, series: Series, run: NewTask) -> Sequence[NewTask]:
        gate = Gate(GateKind.LATCH, run.id)
        return [NewTask(self._id(), "told", b"{}", gates=(gate,), owner=series.about.owner)]

    def with_change(self, series: Series) -> Sequence[NewTask]:
        return [NewTask(self._id(), "changed", b"{}", tags=(f"status={series.status}",))]

    def _id(self) -> TaskId:
        self.number += 1
        return TaskId(f"01900000-0000-7000-8000-{self.number:012x}")


async def names(place: Place) -> list[tuple[str, State]]:
    page = await place.app.client.list(limit=100)
    return sorted((task.name.rpartition(".")[2], task.state) for task in page.tasks)


async def test_what_goes_with_a_run_stands_behind_its_end(place: Place) -> None:
    book = replace(place.book, companions=(Teller(),))
    await book.create(place.report.call(7), "every 1h", name="hourly", owner="ann")
    place.clock.advance(HOUR)

    client = place.app.client
    firer = Firer(client.store, client.dispatcher, client.settings, companions=book.companions)
    await firer.round()

    assert await names(place) == [
        ("changed", State.QUEUED),  # made
        ("changed", State.QUEUED),  # advanced
        ("report", State.QUEUED),
        ("told", State.BLOCKED),
    ]


async def test_what_goes_with_a_change_is_not_there_if_the_change_is_not(place: Place) -> None:
    book = replace(place.book, companions=(Teller(),))
    await book.create(place.report.call(7), "every 1h", name="hourly")

    with pytest.raises(InvalidOption, match="already"):
        await book.create(place.report.call(8), "every 1h", name="hourly")
    assert await names(place) == [("changed", State.QUEUED)]

    await book.pause("hourly")
    await book.delete("hourly")
    assert await names(place) == [("changed", State.QUEUED)] * 3


async def test_a_run_by_hand_has_company_too(place: Place) -> None:
    book = replace(place.book, companions=(Teller(),))
    await book.create(place.report.call(7), "every 1h", name="hourly")

    await book.trigger("hourly")

    assert ("told", State.BLOCKED) in await names(place)
