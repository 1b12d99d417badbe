"""`debounce` runs the last of several submits, `throttle` the first."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, Debounce, InvalidOption, State, Throttle
from holdfast.core.coalescing import Coalescing, CoalescingKind
from holdfast.core.record import Record
from holdfast.core.task import Reason, SubmitOutcome
from holdfast.flow.coalescing import MOST_OLDER, CoalescingSweeper
from holdfast.testing import MemoryApp


@pytest.fixture
def ran() -> list[object]:
    return []


def test_the_last_of_several_submits_runs_so_long_after_it(
    app: MemoryApp, ran: list[object]
) -> None:
    @app.task(debounce="30s")
    def index(doc: int, text: str) -> None:
        ran.append((doc, text))

    first = index.submit(1, "a")
    app.clock.advance(29)
    second = index.submit(2, "b")
    app.clock.advance(29)

    assert app.drain() == []
    assert (first.outcome, second.outcome) == (SubmitOutcome.CREATED, SubmitOutcome.DEBOUNCED)
    assert first.created
    assert second.created
    assert (first.status(), first.task().reason) == (State.CANCELLED, Reason.SUPERSEDED)
    app.clock.advance(1)
    app.drain()
    assert ran == [(2, "b")]
    assert second.status() is State.COMPLETED


def test_what_a_key_parts_is_debounced_apart(app: MemoryApp, ran: list[object]) -> None:
    @app.task(debounce=Debounce("30s", key="{doc}"))
    def index(doc: int, text: str) -> None:
        ran.append((doc, text))

    for doc, text in [(1, "a"), (2, "a"), (1, "b")]:
        index.submit(doc, text)
    app.drain("empty")

    assert sorted(ran) == [(1, "b"), (2, "a")]  # type: ignore[type-var] # pairs


def test_owners_are_debounced_apart(app: MemoryApp, ran: list[object]) -> None:
    @app.task(debounce="30s")
    def index(doc: int) -> None:
        ran.append(doc)

    index.options(owner="ann").submit(1)
    index.options(owner="bob").submit(2)
    index.submit(3)
    app.drain("empty")

    assert ran == [1, 2, 3]


def test_a_key_that_is_none_coalesces_nothing(app: MemoryApp, ran: list[object]) -> None:
    @app.task(throttle=Throttle("1h", key=lambda doc: None if doc < 0 else str(doc)))
    def index(doc: int) -> None:
        ran.append(doc)

    outcomes = [index.submit(doc).outcome for doc in (-1, -1, 1, 1)]

    assert outcomes == ["created", "created", "created", "throttled"]


def test_submits_that_keep_coming_push_it_off_no_longer_than_max(
    app: MemoryApp, ran: list[object]
) -> None:
    @app.task(debounce=Debounce("30s", max="1m"))
    def index(n: int) -> None:
        ran.append(n)

    began = app.clock.now
    for n in range(10):
        handle = index.submit(n)
        app.clock.advance(20)
        if app.drain():
            break

    assert ran == [2]
    assert handle.task().started_at == began + timedelta(seconds=60)
    index.submit(99)
    app.clock.advance(29)
    assert app.drain() == [], "what comes after its start begins to wait anew"


def test_one_that_was_pushed_off_long_enough_keeps_its_place_in_line(app: MemoryApp) -> None:
    @app.task(debounce=Debounce("30s", max="1m"))
    def index(n: int) -> None: ...

    handle = index.submit(0)
    began = handle.task().created_at
    for n in range(10):  # nobody works meanwhile
        app.clock.advance(20)
        handle = index.submit(n)

    assert handle.task().run_at == began + timedelta(seconds=60)


def test_one_that_runs_goes_on_and_the_next_submit_is_another_task(
    app: MemoryApp, ran: list[object]
) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None:
        ran.append(n)
        if n == 1:
            later = index.submit(2)
            assert later.outcome is SubmitOutcome.CREATED

    first = index.submit(1)
    app.drain("empty")

    assert ran == [1, 2]
    assert first.status() is State.COMPLETED


def test_a_retry_of_one_that_was_replaced_is_dropped(app: MemoryApp, ran: list[object]) -> None:
    @app.task(debounce="30s", retry="fixed(1h)")
    def index(n: int) -> None:
        ran.append(n)
        if n == 1:
            raise ValueError(n)

    first = index.submit(1)
    app.clock.advance(30)
    app.drain()
    second = index.submit(2)
    app.drain("empty")

    assert second.outcome is SubmitOutcome.DEBOUNCED
    assert ran == [1, 2]
    assert first.task().reason is Reason.SUPERSEDED


def test_several_of_one_key_in_one_submit_are_one_task(app: MemoryApp, ran: list[object]) -> None:
    @app.task(debounce=Debounce("30s", key="{doc}"))
    def index(doc: int, text: str) -> None:
        ran.append((doc, text))

    @app.task(throttle=Throttle("1h", key="{doc}"))
    def tell(doc: int, text: str) -> None:
        ran.append((doc, text))

    @app.task
    def plain(doc: int) -> None:
        ran.append(doc)

    a, p, b, c, one, two = app.submit_many(
        [
            index.call(1, "a"),
            plain.call(7),
            index.call(1, "b"),
            index.call(2, "c"),
            tell.call(3, "first"),
            tell.call(3, "second"),
        ]
    )
    app.drain("empty")

    assert a.id == b.id != c.id
    assert [h.outcome for h in (a, p, b, c)] == ["debounced", "created", "created", "created"]
    assert one.id == two.id
    assert (one.outcome, two.outcome) == ("created", "throttled")
    assert set(ran) == {7, (1, "b"), (2, "c"), (3, "first")}


def test_the_first_submit_wins_for_as_long_as_a_throttle_says(
    app: MemoryApp, ran: list[object]
) -> None:
    @app.task(throttle="1h")
    def report(n: int) -> int:
        ran.append(n)
        return n

    first = report.submit(1)
    app.drain()
    app.clock.advance(3599)
    second = report.submit(2)

    assert second.id == first.id
    assert (second.outcome, second.created, second.result()) == ("throttled", False, 1)
    app.clock.advance(1)
    third = report.submit(3)
    app.drain()
    assert (third.outcome, ran) == ("created", [1, 3])


def test_a_throttled_submit_of_a_task_that_is_forgotten_gets_its_id(app: MemoryApp) -> None:
    @app.task(throttle="1h")
    def report() -> None: ...

    first = report.submit()
    app.drain()
    app.discard(state="completed")

    assert report.submit().id == first.id


def test_a_throttled_task_may_be_delayed(app: MemoryApp, ran: list[object]) -> None:
    @app.task(throttle="1h")
    def report(n: int) -> None:
        ran.append(n)

    report.options(delay="5m").submit(1)
    assert app.drain() == []
    app.drain("empty")

    assert ran == [1]


async def test_an_older_one_that_was_not_cancelled_is_dropped_when_it_is_claimed(
    app: MemoryApp, ran: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None:
        ran.append(n)

    client = await app.verbs()

    async def dies(*_: Any, **__: Any) -> None:
        raise ConnectionResetError("the submitter dies here")

    first = await index.submit_async(1)
    with monkeypatch.context() as patched:
        patched.setattr(client.store, "cancel", dies)
        with pytest.raises(ConnectionResetError):
            await index.submit_async(2)
    assert await first.status_async() is State.QUEUED
    await app.drain_async("empty")

    assert ran == [2]
    task = await first.task_async()
    assert (task.state, task.reason) == (State.CANCELLED, Reason.SUPERSEDED)
    assert task.error is not None
    assert "was submitted after it" in task.error.message


async def test_what_submitters_that_died_left_is_cancelled_by_the_next(
    app: MemoryApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None: ...

    client = await app.verbs()

    async def dies(*_: Any, **__: Any) -> None:
        raise ConnectionResetError("the submitter dies here")

    await index.submit_async(-1)
    for n in range(3):
        with monkeypatch.context() as patched:
            patched.setattr(client.store, "cancel", dies)
            with pytest.raises(ConnectionResetError):
                await index.submit_async(n)
    last = await index.submit_async(9)

    page = await client.list(state="queued")
    assert [task.id for task in page.tasks] == [last.id]


async def test_a_long_burst_leaves_a_short_record(app: MemoryApp) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None: ...

    client = await app.verbs()
    longest = 0
    for n in range(3 * MOST_OLDER):
        await index.submit_async(n)
        [record] = await client.store.records("debounce", limit=10)
        longest = max(longest, len(record.document))

    assert longest < 60 * (MOST_OLDER + 3)
    assert await client.count(state="queued") == 1


async def test_records_are_forgotten_once_they_have_served(app: MemoryApp) -> None:
    @app.task(debounce=Debounce("30s", key="{n}"))
    def index(n: int) -> None: ...

    @app.task(throttle=Throttle("1h", key="{n}"))
    def report(n: int) -> None: ...

    client = await app.verbs()
    sweeper = CoalescingSweeper(client.store)

    async def keys() -> list[str]:
        found: list[Record] = []
        for kind in CoalescingKind:
            found += await client.store.records(kind, limit=10)
        return sorted(record.key.rpartition(".")[2] for record in found)

    await index.submit_async(1)
    await index.submit_async(1)
    await report.submit_async(2)
    app.clock.advance(600)
    await sweeper.tick()
    assert await keys() == ["index 1", "report 2"], "it waits, and its time is not over"
    await app.drain_async()
    app.clock.advance(600)
    await sweeper.tick()
    assert await keys() == ["report 2"]
    app.clock.advance(3600)
    await sweeper.tick()
    assert await keys() == []


def test_an_operator_may_run_one_again_that_none_has_replaced(
    app: MemoryApp, ran: list[object]
) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None:
        ran.append(n)

    handle = index.submit(1)
    app.drain("empty")
    handle.retry()
    app.drain()

    assert ran == [1, 1]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay": "1m"}, "delay"),
        ({"run_at": "2035-01-01T00:00:00Z"}, "run_at"),
        ({"unique_key": "a"}, "unique_key"),
        ({"idempotency_key": "a"}, "idempotency_key"),
        ({"expires": "30s"}, "expires"),
        ({"connection": object()}, "connection"),
    ],
)
def test_what_cannot_go_with_a_debounce_is_refused(
    app: MemoryApp, options: dict[str, Any], field: str
) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None: ...

    with pytest.raises(InvalidOption) as refused:
        index.options(**options).submit(1)

    assert refused.value.option == field
    assert app.count() == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"debounce": "0s"}, r"^debounce: expected a duration longer than 0"),
        ({"debounce": "soon"}, r"^debounce: expected"),
        ({"debounce": Throttle("1h")}, r"^debounce: expected Debounce"),
        ({"debounce": "1s", "throttle": "1s"}, r"^throttle: .*give one of them"),
        ({"debounce": "1s", "unique": True}, r"^unique: .*give one of them"),
        ({"throttle": Throttle("1h", key="{m}")}, r"^throttle.key: .*'m'.*no parameter"),
        ({"debounce": Debounce("30s", max="10s")}, r"^debounce.max: expected no less"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_at_the_decorator(
    app: MemoryApp, options: dict[str, Any], says: str
) -> None:
    def index(n: int) -> None: ...

    with pytest.raises(InvalidOption, match=says):
        app.task(**options)(index)


def test_a_follow_up_cannot_be_debounced(app: MemoryApp) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None: ...

    @app.task(max_retries=0)
    def work(ctx: Context) -> None:
        ctx.submit(index, 1)

    handle = work.submit()
    app.drain()

    error = handle.task().error
    assert error is not None
    assert error.type == "InvalidOption"
    assert "debounce" in error.message
    assert "submit_async" in error.message


async def test_racing_submits_leave_one_that_waits(app: MemoryApp) -> None:
    @app.task(debounce="30s")
    def index(n: int) -> None: ...

    handles = await asyncio.gather(*(index.submit_async(n) for n in range(32)))
    client = await app.verbs()

    page = await client.list(state="queued")
    assert len(page.tasks) == 1
    assert len({handle.id for handle in handles}) == 32


def test_long_keys_are_kept_as_their_hash() -> None:
    long = Coalescing(CoalescingKind.DEBOUNCE, "ä" * 400, 1.0)

    assert len(long.record_key("index", "ann").encode()) < 100
    assert long.record_key("index", "ann") != long.record_key("index", "bob")
    assert Coalescing(CoalescingKind.DEBOUNCE, "", 1.0).record_key("index", None) == "index"
