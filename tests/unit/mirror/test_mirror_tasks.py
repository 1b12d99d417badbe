"""Mirror tasks: stored with what they tell of, and the copy ends up right whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.kit.mirroring import URL, MemoryDocuments, serve_mirror

from holdfast.core.delivery import NAME as DELIVERY
from holdfast.core.delivery import delivery_id
from holdfast.core.gate import Gate, GateKind
from holdfast.core.mirror import AT_A_TIME, NAME
from holdfast.core.task import NewTask, State, TaskId
from holdfast.definitions.context import Context
from holdfast.definitions.definition import Definition
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.errors import Fatal
from holdfast.mirror.companion import MirrorCompanion
from holdfast.mirror.writing import next_look
from holdfast.schedules.book import Book
from holdfast.schedules.deliveries import delivery_tasks
from holdfast.schedules.series import Series
from holdfast.testing import FakeClock, MemoryApp

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Place:
    """An app that mirrors into memory, and a task to schedule."""

    app: MemoryApp
    documents: MemoryDocuments
    report: Definition[..., str, Any]

    @property
    def book(self) -> Book:
        return self.app.client.schedules

    async def hourly(self, owner: str | None = "ann", **words: Any) -> None:
        await self.book.create(
            self.report.call(), "every 1h", name="hourly", owner=owner, title="Report", **words
        )

    async def an_hour_passes(self) -> None:
        self.app.clock.advance(HOUR)
        await self.app.drain_async()

    @property
    def executions(self) -> list[Any]:
        return [each for path, each in self.documents.found.items() if "/executions/" in path]

    async def mirror_tasks(self) -> list[State]:
        page = await self.app.client.list(name=NAME, limit=100)
        return [task.state for task in page.tasks]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    app = MemoryApp(
        clock=FakeClock(NOON + timedelta(seconds=1)), firestore_url=URL,
        smtp_url="smtp://localhost:1", mail_from="robot@example.com",
    )  # fmt: skip
    documents = MemoryDocuments()

    @app.task(name="report", max_retries=0)
    def report(fails: bool = False) -> str:
        if fails:
            raise Fatal("no")
        return "all is well"

    async with app:
        await app.recipients.put_async("ann", email="ann@example.com")
        serve_mirror(app, documents)
        yield Place(app, documents, report)


async def test_a_schedule_of_an_owner_is_shown_and_its_changes_follow(place: Place) -> None:
    await place.hourly()
    await place.app.drain_async()
    assert place.documents.found["hourly"]["title"] == "Report"
    assert place.documents.found["hourly"]["nextExecutionTime"] == NOON + HOUR

    await place.book.update("hourly", title="Numbers")
    await place.book.pause("hourly")
    await place.app.drain_async()

    assert place.documents.found["hourly"]["title"] == "Numbers"
    assert place.documents.found["hourly"]["status"] == "paused"


async def test_a_schedule_without_an_owner_is_nobodys_to_see(place: Place) -> None:
    await place.hourly(owner=None)
    await place.an_hour_passes()

    assert place.documents.found == {}
    assert await place.mirror_tasks() == []


async def test_a_schedule_that_lost_its_owner_is_no_longer_shown(place: Place) -> None:
    await place.hourly()
    await place.an_hour_passes()
    assert len(place.documents.found) == 2

    await place.book.update("hourly", owner=None)
    await place.app.drain_async()

    assert place.documents.found == {}


async def test_a_run_is_shown_with_its_end_and_the_schedule_goes_on(place: Place) -> None:
    await place.hourly(chat_id="chat-1")

    await place.an_hour_passes()

    [execution] = place.executions
    assert execution["taskId"] == "hourly"
    assert execution["createdByUserId"] == "ann"
    assert execution["status"] == "completed"
    assert execution["content"] == "all is well"
    assert execution["chatId"] == "chat-1"
    assert execution["isDelivered"] is False
    schedule = place.documents.found["hourly"]
    assert schedule["nextExecutionTime"] == NOON + 2 * HOUR
    assert schedule["currentCloudTaskId"] == execution["id"]


async def test_a_failed_run_is_shown_as_failed_and_as_it_ends_when_started_again(
    place: Place,
) -> None:
    fails = [True]

    @place.app.task(name="shaky", max_retries=0)
    def shaky() -> str:
        if fails[0]:
            raise Fatal("no")
        return "better"

    await place.book.create(shaky.call(), "every 1h", name="shaky", owner="ann")
    await place.an_hour_passes()
    [execution] = place.executions
    assert (execution["status"], execution["content"]) == ("failed", None)

    fails.clear()
    fails.append(False)
    await place.app.client.retry(TaskId(execution["id"]))
    await place.app.drain_async()

    [execution] = place.executions
    assert (execution["status"], execution["content"]) == ("completed", "better")


async def test_a_run_that_is_under_way_is_shown_with_its_progress(place: Place) -> None:
    seen: list[Any] = []

    @place.app.task(name="long", timeout="1h")
    async def long(ctx: Context) -> str:
        ctx.progress(1, 3, "reading")
        await ctx.sleep("10s")
        return "done"

    await place.book.create(long.call(), "2026-03-02T13:00", tz="UTC", name="long", owner="ann")
    place.app.clock.advance(HOUR)
    await place.app.drain_async()
    place.app.clock.advance(5)
    await place.app.drain_async()  # the follower looks again
    seen += place.executions
    place.app.clock.advance(60)
    await place.app.drain_async()

    [under_way], [ended] = seen, place.executions
    assert under_way["progress"] == {"done": 1, "total": 3, "message": "reading"}
    assert under_way["status"] not in ("completed", "failed")
    assert (ended["status"], ended["content"]) == ("completed", "done")
    assert set(await place.mirror_tasks()) == {State.COMPLETED}  # nobody follows it any more


class Deliveries:
    """A companion that delivers each run by the channels of its schedule."""

    def with_run(self, series: Series, run: NewTask) -> Sequence[NewTask]:
        return delivery_tasks(series, run, head_start=0)

    def with_change(self, _series: Series) -> Sequence[NewTask]:
        return []


async def test_a_run_is_delivered_when_every_channel_has_delivered_it(place: Place) -> None:
    away = {"email"}

    @place.app.task(name=DELIVERY, max_retries=3, retry="fixed(1m)")
    def deliver(channel: str, title: str, task_id: str, schedule: str, end: int) -> str:
        if channel in away:
            raise OSError("nobody there")
        return "delivered"

    await place.hourly(channels=["email", "inbox"])
    companions = (Deliveries(), *place.book.companions)
    await replace(place.book, companions=companions).trigger("hourly")
    await place.app.drain_async()
    [execution] = place.executions
    assert (execution["status"], execution["isDelivered"]) == ("completed", False)

    away.clear()
    place.app.clock.advance(60)
    await place.app.drain_async()

    [execution] = place.executions
    assert execution["isDelivered"] is True


async def test_a_deleted_schedule_is_gone_with_its_executions(place: Place) -> None:
    await place.hourly()
    await place.an_hour_passes()
    await place.an_hour_passes()
    assert len(place.executions) == 2

    await place.book.delete("hourly")
    await place.app.drain_async()

    assert place.documents.found == {}


async def test_a_run_that_ends_after_its_schedule_was_deleted_is_not_shown(place: Place) -> None:
    await place.hourly()
    await place.book.trigger("hourly")
    await place.book.delete("hourly")

    await place.app.drain_async()

    assert place.documents.found == {}


async def test_what_could_not_be_written_is_written_later_and_nothing_else_waits(
    place: Place,
) -> None:
    place.documents.is_away = True
    await place.hourly()
    await place.an_hour_passes()
    assert place.documents.found == {}
    assert await place.app.client.count(name="report", state="completed") == 1
    assert State.RETRYING in await place.mirror_tasks()

    place.documents.is_away = False
    place.app.clock.advance(3600)
    await place.app.drain_async()

    assert {each["status"] for each in place.executions} == {"completed"}
    assert place.documents.found["hourly"]["title"] == "Report"
    assert State.RETRYING not in await place.mirror_tasks()


async def test_what_is_the_same_already_is_not_written_again(place: Place) -> None:
    await place.hourly()
    await place.app.drain_async()

    await place.book.resume("hourly")  # it was not paused
    await place.app.drain_async()

    assert len(await place.mirror_tasks()) == 2
    assert place.documents.writes == 1


async def test_no_mirror_no_tasks() -> None:
    app = MemoryApp(clock=FakeClock(NOON))

    @app.task(name="report")
    def report() -> None: ...

    async with app:
        await app.client.schedules.create(report.call(), "every 1h", owner="ann")

        assert await app.client.count() == 0


async def test_the_tasks_of_one_schedule_stand_in_line_and_behind_what_they_tell_of(
    place: Place,
) -> None:
    await place.hourly(channels=["email"])
    series = await place.book.get("hourly")
    run = NewTask(TaskId("01900000-0000-7000-8000-000000000001"), "report", b"{}")
    companion = MirrorCompanion(TaskMaker(place.app.settings))
    assert series is not None

    [change] = companion.with_change(series)
    follower, end, delivered = companion.with_run(series, run)

    line = (Gate(GateKind.LOCK, "mirror hourly"), Gate(GateKind.LIMIT, "mirror", AT_A_TIME))
    assert change.gates == follower.gates == line
    assert end.gates == (Gate(GateKind.LATCH, run.id), *line)
    assert delivered.gates == (Gate(GateKind.LATCH, delivery_id(run.id, "email")), *line)
    assert {each.owner for each in (change, follower, end, delivered)} == {"ann"}


@pytest.mark.parametrize(("age", "rest"), [(0, 1.0), (2, 1.0), (60, 15.0), (86_400, 300.0)])
def test_what_takes_long_is_looked_at_rarely(age: float, rest: float) -> None:
    assert next_look(timedelta(seconds=age)) == rest
