"""Workers over HTTP are handed tasks that have to do with others when these may run, with what the
others returned.
"""

from __future__ import annotations

import json

from tests.integration.remote.depot import Depot, failure
from tests.kit.weaving import chained, linked, stored

from holdfast.core.task import Reason, State


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
