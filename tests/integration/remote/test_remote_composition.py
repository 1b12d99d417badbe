"""Workers over HTTP are handed tasks that have to do with others when these may run, with what the
others returned.
"""

from __future__ import annotations

import json

from tests.integration.remote.depot import Depot, failure, result, verdicts
from tests.kit.weaving import chained, family, linked, parent, stored

from holdfast.core.flow import Body
from holdfast.core.task import Reason, State
from holdfast.remote import Verdict
from holdfast.testing.factories import new_task


async def test_a_link_comes_with_the_result_of_the_one_before(depot: Depot) -> None:
    worker = await depot.worker()
    links = chained([("hop", {"x": 1}), ("hop", {"y": 2})])
    await depot.store.commit(stored(links))
    (first,) = await depot.remote.poll(worker, limit=5, wait=0.0)
    await depot.tell(worker, first, result={"n": 7})

    (second,) = await depot.remote.poll(worker, limit=5, wait=0.0)

    assert json.loads(second.payload)["x"] == {"n": 7}
    assert json.loads(second.payload)["y"] == 2


async def test_what_follows_a_failure_is_handed_to_nobody(depot: Depot) -> None:
    worker = await depot.worker()
    links = chained([("hop", {}), ("hop", {}), ("hop", {})])
    other = linked("other")
    await depot.store.commit(stored(links))
    (first,) = await depot.remote.poll(worker, limit=5, wait=0.0)
    await depot.remote.results(worker, [failure(first, retriable=False)])
    await depot.store.commit(stored([other]))

    claims = await depot.remote.poll(worker, limit=1, wait=0.0)

    assert [claim.task_id for claim in claims] == [other.id]
    for link in links[1:]:
        task = await depot.get(link.id)
        assert (task.state, task.reason) == (State.CANCELLED, Reason.DEPENDENCY_FAILED)


async def test_a_poll_that_only_dropped_things_goes_on_to_wait(depot: Depot) -> None:
    worker = await depot.worker()
    links = chained([("hop", {}), ("hop", {})])
    await depot.store.commit(stored(links))
    (first,) = await depot.remote.poll(worker, limit=5, wait=0.0)
    await depot.remote.results(worker, [failure(first, retriable=False)])

    assert list(await depot.remote.poll(worker, limit=5, wait=0.0)) == []
    assert await depot.state(links[1].id) is State.CANCELLED


async def test_a_result_may_bring_children_and_the_task_ends_after_them(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    children = [new_task(name="child"), new_task(name="child")]

    answer = await depot.tell(worker, claim, result=7, children=children)

    assert answer.verdict is Verdict.SAVED
    assert await depot.state(claim.task_id) is State.BLOCKED
    again = await depot.remote.results(worker, [result(claim, result=7, children=children)])
    assert verdicts(again) == [Verdict.REPEATED]
    claims = await depot.remote.poll(worker, limit=5, wait=0.0)
    assert [each.task_id for each in claims] == [child.id for child in children]
    for each in claims:
        await depot.tell(worker, each)
    assert list(await depot.remote.poll(worker, limit=5, wait=0.0)) == []
    task = await depot.get(claim.task_id)
    assert (task.state, task.value) == (State.COMPLETED, 7)
    assert [(await depot.get(child.id)).parent_id for child in children] == [task.id] * 2


async def test_a_body_may_go_before_the_children_that_it_was_submitted_with(depot: Depot) -> None:
    worker = await depot.worker()
    father = parent("plan", body=Body.BEFORE)
    tasks = family(father, [linked("child", body_of=father)])
    await depot.store.commit(stored(tasks))
    (claim,) = await depot.remote.poll(worker, limit=5, wait=0.0)

    await depot.tell(worker, claim, result="planned")

    (child,) = await depot.remote.poll(worker, limit=5, wait=0.0)
    assert child.name == "child"
    await depot.tell(worker, child)
    assert list(await depot.remote.poll(worker, limit=5, wait=0.0)) == []
    assert (await depot.get(father.id)).value == "planned"
