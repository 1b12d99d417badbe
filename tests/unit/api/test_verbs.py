"""The app's verbs: finding, steering and counting tasks."""

from __future__ import annotations

import asyncio
import inspect
from datetime import timedelta
from itertools import chain, pairwise
from typing import Any
from uuid import UUID

import pytest

from holdfast import InvalidOption, State, TaskFilter, TaskNotFound, fixed, where
from holdfast.client import Client
from holdfast.core.ids import is_task_id
from holdfast.definitions.new_tasks import IdMaker
from holdfast.filters import FilterKeywords
from holdfast.sync_facade import SyncFacade
from holdfast.testing import MemoryApp


@pytest.fixture
def work(app: MemoryApp) -> Any:
    @app.task(name="work", max_retries=0, retry=fixed(1))
    def work(n: int) -> int:
        return 1 // n

    return work


class TestSubmittingMany:
    def test_many_calls_are_one_step_in_order(self, app: MemoryApp, work: Any) -> None:
        @app.task
        async def other(text: str) -> str:
            return text.upper()

        handles = app.submit_many(
            [work.call(1), other.options(priority="high", tags=["x"]).call("a"), work.call(2)]
        )
        app.drain()

        assert [handle.result() for handle in handles] == [1, "A", 0]
        assert handles[1].task().tags == ("x",)

    def test_nothing_is_submitted_for_no_calls(self, app: MemoryApp) -> None:
        assert app.submit_many([]) == []

    def test_one_bad_call_leaves_nothing_behind(self, app: MemoryApp, work: Any) -> None:
        with pytest.raises(ValueError, match="do not fit"):
            app.submit_many([work.call(1), work.call("x")])

        assert app.count() == 0

    def test_a_unique_key_holds_inside_one_batch(self, app: MemoryApp, work: Any) -> None:
        once = work.options(unique_key="k")

        first, second = app.submit_many([once.call(1), once.call(2)])

        assert (first.created, second.created, second.id) == (True, False, first.id)

    async def test_async_code_has_it_too(self, app: MemoryApp, work: Any) -> None:
        handles = await app.submit_many_async([work.call(1)])

        assert [handle.created for handle in handles] == [True]

    def test_by_name_with_json(self, app: MemoryApp, work: Any) -> None:
        handle = app.submit_by_name("work", {"n": 1}, priority="high", delay="5s")

        assert (handle.task().name, handle.task().priority) == ("work", "high")
        with pytest.raises(ValueError, match="n: input should be a valid integer"):
            app.submit_by_name("work", {"n": "x"})


class TestFinding:
    def test_pages_follow_each_other_without_gaps(self, app: MemoryApp, work: Any) -> None:
        ids = [handle.id for handle in app.submit_many([work.call(n) for n in range(7)])]

        pages, after = [], None
        while True:
            page = app.list(limit=3, after=after)
            pages.append([task.id for task in page.tasks])
            if (after := page.next) is None:
                break

        assert [len(page) for page in pages] == [3, 3, 1]
        assert list(chain.from_iterable(pages)) == ids[::-1]

    def test_every_filter_word_chooses(self, app: MemoryApp, work: Any) -> None:
        chosen = work.options(
            queue="mail", priority="high", tags=["t"], owner="ann", lock="l", unique_key="u",
            idempotency_key="i",
        ).submit(1)  # fmt: skip
        work.submit(2)
        created = chosen.task().created_at

        for words in (
            {"queue": "mail"}, {"priority": "high"}, {"tag": "t"}, {"owner": "ann"}, {"lock": "l"},
            {"unique_key": "u", "owner": "ann"}, {"idempotency_key": "i", "owner": "ann"},
            {"ids": [chosen]},
            {"ids": [UUID(chosen.id)], "state": "queued"},
            {"state": ["pending", "running"], "queue": "mail"}, {"name": "work", "tag": "t"},
            {"name_prefix": "wo", "tag": "t"},
            {"created_after": created - timedelta(seconds=1), "tag": "t"},
        ):  # fmt: skip
            page: Any = app.list(**words)
            assert [task.id for task in page.tasks] == [chosen.id], words
        assert app.list(created_before=created - timedelta(seconds=1)).tasks == ()
        assert app.list(finished_after=created).tasks == ()
        assert app.list(finished_before=created + timedelta(days=1)).tasks == ()
        assert app.list(error_type="KeyError").tasks == ()
        assert app.list(worker_id="w").tasks == ()
        assert app.list(schedule="nightly").tasks == ()
        assert app.list(parent_id=chosen).tasks == ()

    def test_a_task_is_found_by_either_of_its_keys_the_newest_first(
        self, app: MemoryApp, work: Any
    ) -> None:
        work.options(unique_key="order-17").submit(1).cancel()
        newest = work.options(unique_key="order-17").submit(2)
        once = work.options(idempotency_key="mail-1").submit(3)

        assert app.get_by_key("order-17").id == newest.id
        assert app.get_by_key("mail-1", name="work").id == once.id
        for words in ({"key": "order-18"}, {"key": "mail-1", "name": "other"}):
            with pytest.raises(TaskNotFound):
                app.get_by_key(**words)

    def test_the_test_above_knows_every_word(self) -> None:
        source = inspect.getsource(self.test_every_filter_word_chooses)

        assert [word for word in FilterKeywords.__annotations__ if word not in source] == []

    @pytest.mark.parametrize(
        ("words", "option"),
        [
            ({"state": "runing"}, "state"), ({"state": []}, "state"), ({"state": 5}, "state"),
            ({"priority": "x"}, "priority"), ({"created_after": "yesterday"}, "created_after"),
            ({"created_after": "2030-01-01T00:00"}, "created_after"), ({"limit": 0}, "limit"),
            ({"limit": 1001}, "limit"), ({"nme": "x"}, "nme"), ({"queue": ""}, "queue"),
        ],
    )  # fmt: skip
    def test_a_bad_word_is_refused(self, app: MemoryApp, words: Any, option: str) -> None:
        with pytest.raises(InvalidOption) as refused:
            app.list(**words)

        assert refused.value.option == option

    def test_a_misspelt_state_gets_a_hint(self) -> None:
        with pytest.raises(InvalidOption, match="Did you mean 'running'"):
            where(state="runing")

    def test_other_products_words_are_understood(self) -> None:
        assert where(state=["PENDING", "executing"]) == TaskFilter(
            states=frozenset({State.QUEUED, State.RUNNING})
        )

    def test_a_filter_and_words_together_are_refused(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match="not both"):
            app.list(TaskFilter(), queue="x")

    def test_a_name_may_be_given_without_its_module(self, app: MemoryApp) -> None:
        mail = app.task(name="shop.orders.mail")(lambda: None)
        bill = app.task(name="shop.bill")(lambda: None)
        app.task(name="shop.audit.bill")(lambda: None)
        handles = [mail.submit(), bill.submit()]

        assert [found.id for found in app.list(name="mail").tasks] == [handles[0].id]
        assert app.count(name="orders.mail") == 1
        assert app.count(where(name="mail")) == 1
        assert app.count(name="shop.bill") == 1
        assert app.count(name="ail") == 0
        assert app.cancel_many(name="mail") == 1
        with pytest.raises(InvalidOption, match=r"shop\.audit\.bill, shop\.bill"):
            app.list(name="bill")

    def test_tasks_of_just_this_name_are_found_too(self, app: MemoryApp) -> None:
        app.task(name="shop.mail")(lambda: None).submit()
        other = MemoryApp().task(name="mail")(lambda: None)
        app.submit_many([other.call()])

        assert app.count(name="mail") == 2

    def test_ids_are_found_in_any_dress(self, app: MemoryApp, work: Any) -> None:
        handle = work.submit(1)

        for dress in (handle, handle.id, handle.id.upper(), UUID(handle.id), f" {handle.id} "):
            assert app.get(dress).id == handle.id


class TestSteering:
    def test_dead_letters_are_replayed_by_filter(self, app: MemoryApp, work: Any) -> None:
        app.submit_many([work.options(tags=["a"]).call(0), work.call(0), work.call(1)])
        app.drain()

        assert app.replay(tag="a") == 1
        assert app.stats().states[State.DEAD_LETTER] == 1
        assert app.stats().states[State.COMPLETED] == 1

    def test_a_pace_spreads_them(self, app: MemoryApp, work: Any) -> None:
        app.submit_many([work.call(0) for _ in range(4)])
        app.drain()

        assert app.replay(pace=2) == 4
        tasks = sorted(app.list().tasks, key=lambda task: task.id)

        waits = [(task.run_at - app.clock.now).total_seconds() for task in tasks]
        assert waits == sorted(waits)
        assert [later - first for first, later in pairwise(waits)] == [0.5] * 3

    @pytest.mark.parametrize("pace", [0, -1, float("nan"), float("inf")])
    def test_a_pace_of_nonsense_is_refused(self, app: MemoryApp, pace: float) -> None:
        with pytest.raises(InvalidOption, match=r"^pace: expected tasks per second"):
            app.replay(pace=pace)

    def test_more_than_a_slice_is_replayed_and_discarded_and_cancelled(
        self, app: MemoryApp, work: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("holdfast.client.SLICE", 3)
        app.submit_many([work.call(0) for _ in range(8)])
        app.drain()

        assert app.replay() == 8
        assert app.cancel_many(name="work") == 8
        assert app.discard(state="cancelled") == 8
        assert app.count() == 0

    def test_discarding_spares_what_has_not_ended(self, app: MemoryApp, work: Any) -> None:
        work.submit(1)

        assert app.discard(state=[state.value for state in State]) == 0
        assert app.count() == 1

    def test_discarding_takes_dead_letters_only_unless_told(
        self, app: MemoryApp, work: Any
    ) -> None:
        app.submit_many([work.call(0), work.call(1)])
        app.drain()

        assert app.discard() == 1
        assert [task.state for task in app.list().tasks] == [State.COMPLETED]

    def test_a_paused_queue_waits_and_goes_on(self, app: MemoryApp, work: Any) -> None:
        work.options(queue="mail").submit(1)

        assert (app.pause("mail"), app.pause("mail")) == (True, False)
        assert app.drain() == []
        assert "paused" in app.why(app.list().tasks[0].id).sentence
        assert (app.resume("mail"), app.resume("mail")) == (True, False)
        assert len(app.drain()) == 1

    def test_old_history_is_pruned_by_the_settings(self, work: Any, app: MemoryApp) -> None:
        work.submit(1)
        app.drain()

        app.clock.advance(6 * 86_400)
        assert app.prune() == 0
        app.clock.advance(2 * 86_400)
        assert app.prune() == 1

    def test_workers_and_health_are_told(self, app: MemoryApp, work: Any) -> None:
        work.submit(1)
        app.drain()

        assert [worker.id for worker in app.workers()] == ["drain"]
        assert list(app.doctor()) == []
        assert list(app.migrate()) == []


def test_every_verb_of_the_client_is_on_the_app_twice() -> None:
    verbs = {
        name
        for name, value in inspect.getmembers(Client)
        if inspect.iscoroutinefunction(value) and not name.startswith("_")
    }
    verbs -= {"submit", "submit_many", "submit_parts", "submit_within_async", "migrate"}
    verbs -= {"due_callbacks", "callback_done", "now", "schema_version"}  # for servers, not people
    verbs -= {"standing", "knows_queue", "ended_children", "tree_of", "with_whole_result"}
    verbs -= {"gates", "gate", "limits_of_queue", "steps"}  # for the dashboard

    assert {name for name in vars(SyncFacade) if f"{name}_async" in vars(SyncFacade)} == verbs
    for name in verbs:
        sync, twin = getattr(SyncFacade, name), getattr(SyncFacade, f"{name}_async")
        assert inspect.signature(sync) == inspect.signature(getattr(Client, name))
        assert sync.__doc__ == twin.__doc__ == getattr(Client, name).__doc__
        assert inspect.iscoroutinefunction(twin)
        assert not inspect.iscoroutinefunction(sync)


class TestIds:
    def test_ids_are_uuids_of_version_7_and_grow(self) -> None:
        ids = list(IdMaker().make(5000))

        assert ids == sorted(set(ids))
        assert all(is_task_id(task_id) and UUID(task_id).version == 7 for task_id in ids)

    def test_ids_grow_even_when_the_clock_goes_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        maker = IdMaker()
        (first,) = maker.make(1)
        monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)

        (second,) = maker.make(1)

        assert second > first


def test_the_word_timeout_means_those_that_ran_out_of_time(app: MemoryApp) -> None:
    @app.task(max_retries=0, timeout="10ms")
    async def stuck() -> None:
        await asyncio.sleep(60)

    @app.task(max_retries=0)
    def broken() -> None:
        raise ValueError

    late, _ = stuck.submit(), broken.submit()
    app.drain()

    assert [task.id for task in app.list(state="TIMEOUT").tasks] == [late.id]
    assert app.count(state="dead_letter") == 2
    with pytest.raises(InvalidOption, match="state: 'timeout' stands alone"):
        app.count(state=["timeout", "failed"])
