"""The pages of workers: who is at work, who fell silent, and asking one to leave."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.dashboard.web import submit, web
from tests.integration.server.live import LiveServer

from holdfast.core.fleet import WorkerInfo
from holdfast.core.task import WorkerId

ANNA = WorkerInfo(
    id=WorkerId("anna"), host="h1", pid=17, version="1.0", queues=("default", "mail"),
    capabilities=frozenset({"gpu", "task:shop.add"}), capacity=4,
)  # fmt: skip
BERT = replace(ANNA, id=WorkerId("bert"), version="1.1", queues=None, host="h2")


def register(server: LiveServer, *workers: WorkerInfo) -> None:
    for worker in workers:
        server.app.wait_for(server.app.client.store.register(worker))


def claim(server: LiveServer, worker: WorkerInfo) -> None:
    store = server.app.client.store
    server.app.wait_for(
        store.claim(worker.id, queues=None, capabilities=worker.capabilities, limit=1)
    )


def test_workers_are_listed_with_what_they_run(both: LiveServer) -> None:
    task_id = submit(both, "shop.add", a=1)
    register(both, ANNA)
    claim(both, ANNA)
    ops = web(both, "read")

    page, own = ops.get("/workers").text, ops.get("/workers/anna").text

    for text in ("anna", "1 of 4 slots in use", "default, mail", "gpu", "h1", "1.0"):
        assert text in page
        assert text.replace("default, mail", "mail") in own
    assert f'<a href="/tasks/{task_id}">shop.add</a>' in page
    assert f'href="/tasks/{task_id}"' in own
    assert "task:shop.add" not in page + own
    assert "Different versions" not in page
    assert "Drain this worker" not in own


def test_different_versions_are_pointed_out(dashboard: LiveServer) -> None:
    register(dashboard, ANNA, BERT)
    ops = web(dashboard, "read")

    page = ops.get("/workers").text
    of_mail, of_other = ops.get("/workers?queue=mail").text, ops.get("/workers?queue=other").text

    assert "Different versions are at work" in page
    assert "anna" in of_mail
    assert "anna" not in of_other
    assert "bert" in of_other


def test_dead_workers_are_set_apart(both: LiveServer) -> None:
    register(both, ANNA, BERT)
    assert both.app.wait_for(both.app.client.store.bury(ANNA.id, beats=None))
    ops = web(both, "admin")

    page, own = ops.get("/workers").text, ops.get("/workers/anna").text

    lost, at_work = page[page.index("Silent or dead: 1") :].split("At work", 1)
    assert "anna" in lost
    assert "bert" in at_work
    assert "anna" not in at_work
    assert "It stopped without a word." in own
    assert "Drain this worker" not in own
    assert "No worker" in ops.said(ops.post("/workers/anna/drain"))


def test_a_worker_is_drained(both: LiveServer) -> None:
    register(both, ANNA)
    ops = web(both, "admin")

    before = ops.get("/workers/anna").text
    said = ops.said(ops.post("/workers/anna/drain"))
    (worker,) = both.app.workers()

    assert "Drain this worker" in before
    assert "/api/v1/workers/anna/drain" in before
    assert said == "Worker anna was asked to finish what it has and leave."
    assert worker.drain_requested
    assert "Drain this worker" not in ops.get("/workers/anna").text


def test_a_worker_that_is_not_there_is_said(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")

    said = ops.said(ops.post("/workers/nobody/drain"))

    assert said == "No worker 'nobody' is alive, so there is none to drain."
    assert ops.get("/workers/nobody").status_code == 404
    assert "holdfast worker module:app" in ops.get("/workers").text
