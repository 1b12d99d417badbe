"""Reports of running attempts: progress, cost and log lines, fenced like results."""

from __future__ import annotations

import pytest

from holdfast.core.attempt import Claim, Refusal, Report
from holdfast.core.task import Cost, Progress, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, loss, new_tasks, release, success, task_id
from holdfast.testing.suites.base import (
    Settle,
    StoreSuite,
    add,
    claim,
    claim_one,
    enlist,
    events,
    get,
    kinds,
    save,
    started,
)
from holdfast.testing.suites.races import at_once, in_threads


def _report(
    found: Claim,
    progress: Progress | None = None,
    cost: Cost | None = None,
    logs: tuple[str, ...] = (),
) -> Report:
    return Report(found.task_id, found.attempt, found.worker_id, progress, cost, logs)


async def _told(store: Store, *reports: Report) -> None:
    assert list(await store.report(reports)) == []


class ReportSuite(StoreSuite):
    """`report`: progress replaces, cost adds, log lines become events."""

    @pytest.mark.parametrize(
        "progress",
        [
            Progress(done=0.0),
            Progress(done=3.0, total=10.0),
            Progress(done=0.25, total=1.0, message="Seite 3 ☃"),
        ],
    )
    async def test_progress_comes_back_as_reported(
        self, store: Store, worker: WorkerId, progress: Progress
    ) -> None:
        found = await started(store, worker)

        await _told(store, _report(found, progress))

        assert (await get(store, found.task_id)).progress == progress

    async def test_progress_replaces_what_was_before(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        await _told(store, _report(found, Progress(done=1, total=9, message="one")))

        await _told(store, _report(found, Progress(done=2)))

        assert (await get(store, found.task_id)).progress == Progress(done=2)

    async def test_a_report_without_progress_leaves_it(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await _told(store, _report(found, Progress(done=1)))

        await _told(store, _report(found, cost=Cost(units=1)), _report(found, logs=("x",)))

        assert (await get(store, found.task_id)).progress == Progress(done=1)

    async def test_progress_stays_when_the_task_ends(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        await _told(store, _report(found, Progress(done=1)))

        await save(store, success(found))

        assert (await get(store, found.task_id)).progress == Progress(done=1)

    async def test_cost_adds_up(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)

        await _told(store, _report(found, cost=Cost(units=0.5, tokens_in=10)))
        await _told(store, _report(found, cost=Cost(units=0.25, tokens_in=1, tokens_out=7)))

        assert (await get(store, found.task_id)).cost == Cost(
            units=0.75, tokens_in=11, tokens_out=7
        )

    async def test_cost_adds_up_over_attempts(self, store: Store, worker: WorkerId) -> None:
        first = await started(store, worker)
        await _told(store, _report(first, cost=Cost(units=1)))
        await save(store, failure(first, backoff=0.0))
        second = await claim_one(store, worker)

        await _told(store, _report(second, cost=Cost(units=2)))

        assert (await get(store, first.task_id)).cost == Cost(units=3)

    async def test_a_task_without_reports_has_no_cost_and_no_progress(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        task = await get(store, found.task_id)
        assert (task.cost, task.progress) == (Cost(), None)

    async def test_log_lines_become_events_in_their_order(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        clock.advance(2)

        await _told(store, _report(found, logs=("one", "zwei\n☃")), _report(found, logs=("3",)))

        lines = [event for event in await events(store, found.task_id) if event.kind == "log"]
        assert [line.detail for line in lines] == ["one", "zwei\n☃", "3"]
        assert {(line.at, line.attempt, line.worker_id) for line in lines} == {
            (clock.now, 1, worker)
        }

    async def test_a_batch_of_reports_reaches_every_task(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(30))
        claims = await claim(store, worker)

        await _told(store, *(_report(c, Progress(done=n)) for n, c in enumerate(claims)))

        shown = [(await get(store, c.task_id)).progress for c in claims]
        assert shown == [Progress(done=n) for n in range(30)]

    async def test_an_empty_batch_of_reports_is_fine(self, store: Store) -> None:
        await _told(store)

    @pytest.mark.parametrize("settle", [success, failure, loss, release])
    async def test_a_report_of_an_ended_attempt_is_refused_and_counted_without_an_event(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        found = await started(store, worker)
        await save(store, settle(found))
        before = await get(store, found.task_id)

        late = _report(found, Progress(done=9), Cost(units=9), ("late",))
        refusals = await store.report([late])

        assert list(refusals) == [Refusal(found.task_id, 1, worker, None)]
        assert await get(store, found.task_id) == before
        assert await kinds(store, found.task_id) == ["submitted"]
        assert (await store.stats()).refused == 1

    async def test_a_report_of_a_worker_that_lost_its_task_names_the_new_holder(
        self, store: Store, worker: WorkerId
    ) -> None:
        stale = await started(store, worker)
        await save(store, loss(stale))
        other = await enlist(store)
        await claim_one(store, other)

        refusals = await store.report([_report(stale, Progress(done=1))])

        assert list(refusals) == [Refusal(stale.task_id, 1, worker, other)]
        assert (await get(store, stale.task_id)).progress is None

    async def test_a_report_for_an_unknown_task_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        ghost = _report(found._replace(task_id=task_id()), Progress(done=1))

        assert [r.task_id for r in await store.report([ghost])] == [ghost.task_id]

    async def test_the_rest_of_a_batch_is_written_beside_a_refused_report(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(2))
        one, two = await claim(store, worker)
        await save(store, success(one))

        refusals = await store.report(
            [_report(one, Progress(done=1)), _report(two, Progress(done=1))]
        )

        assert [r.task_id for r in refusals] == [one.task_id]
        assert (await get(store, two.task_id)).progress == Progress(done=1)

    async def test_racing_costs_are_all_counted(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        unit = _report(found, cost=Cost(units=1, tokens_in=2, tokens_out=3))

        await at_once(30, lambda _: _told(store, unit))
        await in_threads(4, lambda _: _told(store, unit, unit))

        assert (await get(store, found.task_id)).cost == Cost(
            units=38, tokens_in=76, tokens_out=114
        )
