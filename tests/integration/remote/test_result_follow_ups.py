"""What a worker submits with a result exists if and only if the result counts."""

from __future__ import annotations

from tests.integration.remote.depot import SOON, Depot, result, verdicts

from holdfast.core.keys import stored_key
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, Task
from holdfast.core.trace import EXAMPLE
from holdfast.remote import Verdict
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import new_task


async def there(depot: Depot) -> dict[str, Task]:
    """The follow-ups that exist, by name."""
    page = await depot.store.list(TaskFilter(queue="later"), limit=10)
    return {task.name: task for task in page.tasks}


async def test_follow_ups_are_stored_with_the_result_and_belong_to_its_trace(
    depot: Depot,
) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, trace=EXAMPLE)
    other = EXAMPLE.replace("4bf9", "0000")
    new = [new_task(name="a", queue="later"), new_task(name="b", queue="later", trace=other)]

    answer = await depot.tell(worker, claim, follow_ups=new)

    assert answer.verdict is Verdict.SAVED
    tasks = await there(depot)
    assert {name: task.trace_id for name, task in tasks.items()} == {
        "a": EXAMPLE[3:35],
        "b": other[3:35],
    }
    assert await depot.state(claim.task_id) is State.COMPLETED


async def test_a_repeat_leaves_one_set_of_follow_ups(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    for server in (depot.remote, depot.remote, depot.server()):
        said = result(claim, follow_ups=[new_task(name="a", queue="later")])
        (answer,) = await server.results(worker, [said])
        assert answer.is_accepted

    assert await depot.store.count(TaskFilter(queue="later"), limit=10) == 1


async def test_a_late_result_submits_nothing(depot: Depot) -> None:
    worker, other = await depot.worker(), await depot.worker()
    claim = await depot.started(worker)

    answer = await depot.tell(other, claim, follow_ups=[new_task(queue="later")])

    assert answer.verdict is Verdict.STALE
    assert await there(depot) == {}


async def test_a_used_idempotency_key_records_nothing_and_the_attempt_goes_on(
    depot: Depot,
) -> None:
    worker = await depot.worker()
    claim, fine = await depot.started(worker), await depot.started(worker)
    key = stored_key("ann", "k")
    await depot.submit(name="first", queue="later", idempotency_key=key, fingerprint="1")
    clash = new_task(name="b", queue="later", idempotency_key=key, fingerprint="2")
    new = [new_task(name="a", queue="later"), clash]

    answers = await depot.remote.results(
        worker,
        [
            result(claim, follow_ups=new),
            result(fine, follow_ups=[new_task(name="c", queue="later")]),
        ],
    )

    assert verdicts(answers) == [Verdict.CONFLICT, Verdict.SAVED]
    assert "'k' was already used" in str(answers[0].detail)
    assert set(await there(depot)) == {"first", "c"}
    assert await depot.state(claim.task_id) is State.RUNNING
    assert (await depot.store.stats()).refused == 0
    assert depot.remote._leases.find(worker, claim.task_id, 1) is not None
    assert (await depot.tell(worker, claim, follow_ups=new[:1])).verdict is Verdict.SAVED
    assert set(await there(depot)) == {"first", "a", "c"}


async def test_who_waits_for_a_follow_up_is_woken(depot: Depot) -> None:
    worker, waiting = await depot.worker(), await depot.worker(queues=["later"])
    claim = await depot.started(worker)
    polling = await depot.parked(waiting)

    await depot.tell(worker, claim, follow_ups=[new_task(name="a", queue="later")])

    await eventually(polling.done, within=SOON)
    assert [one.name for one in await polling] == ["a"]
