"""`/metrics` of a server: who may see it, in which words, and with how many labels at most."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast.core import metrics
from holdfast.core.metrics import METRICS, Kind
from holdfast.core.task import Json
from holdfast.counting import tally_of
from holdfast.metrics.exposition import MOST_QUEUES, OTHERS
from holdfast.testing.factories import new_task

DEPTH = ("queue", "priority")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with serve(make_app("memory://", open_queues="js")) as live:
        yield live


def families(answer: httpx.Response) -> dict[str, Metric]:
    assert answer.status_code == 200, answer.text
    read = openmetrics if "openmetrics" in answer.headers["content-type"] else text
    return {family.name: family for family in read(answer.text)}


def values(families: dict[str, Metric], name: str, *labels: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS, "text/html, */*"])
def test_every_metric_is_there_on_an_empty_store(server: LiveServer, accept: str) -> None:
    answer = server.client("read").get("/metrics", headers={"accept": accept})

    found = families(answer)
    names = {metric.full_name for metric in METRICS}
    told = {name if name in names else f"{name}_total" for name in found}
    assert told == names
    kinds = {family.type for family in found.values()}
    assert kinds == {"counter", "gauge", "histogram"}
    assert ("openmetrics" in answer.headers["content-type"]) is (accept == OPENMETRICS)
    assert answer.text.endswith("# EOF\n") is (accept == OPENMETRICS)


def test_a_token_that_is_bound_or_may_not_read_sees_nothing(server: LiveServer) -> None:
    bound = server.client("read", owner="anna").get("/metrics")
    submitter = server.client("submit").get("/metrics")
    nobody = server.client().get("/metrics")

    assert (bound.status_code, bound.json()["code"]) == (403, "bound_token")
    assert (submitter.status_code, submitter.json()["code"]) == (403, "insufficient_scope")
    assert nobody.status_code == 401
    assert server.admin.get("/metrics").status_code == 200


def test_what_was_done_is_told(server: LiveServer) -> None:
    for _ in range(3):
        server.app.submit_by_name("shop.add", {"a": 1})
    server.work()
    for _ in range(2):
        server.app.submit_by_name("shop.mail", {"to": "anna"})

    found = families(server.admin.get("/metrics"))

    assert values(found, "holdfast_task_state_total", "state") == {
        ("running",): 3,
        ("completed",): 3,
    }
    depths = values(found, "holdfast_queue_depth", *DEPTH)
    assert depths["mail", "high"] == 2
    assert sum(depths.values()) == 2
    assert values(found, "holdfast_task_duration_seconds_count", "priority", "status") == {
        ("normal", "completed"): 3
    }
    buckets = values(found, "holdfast_queue_wait_seconds_bucket", "priority", "le")
    assert buckets["normal", "+Inf"] == 3
    assert [*buckets.values()] == sorted(buckets.values())


def test_hostile_names_of_queues_are_told_as_they_are(server: LiveServer) -> None:
    names = ['a"b', "line\nfeed", "back\\slash", "}{,=", "ä🦊", " ", OTHERS]
    tasks = [new_task(queue=name) for name in names]
    server.app.wait_for(server.app.client.store.add(tasks, idempotency_window=0))

    for accept in ("", OPENMETRICS):
        found = families(server.admin.get("/metrics", headers={"accept": accept}))
        assert {queue for queue, _ in values(found, "holdfast_queue_depth", *DEPTH)} == {*names}


def test_ten_thousand_queues_are_two_hundred_and_the_others(server: LiveServer) -> None:
    tasks = [new_task(queue=f"q{number}") for number in range(10_000)]
    tasks += [new_task(queue="q7777") for _ in range(3)]
    server.app.wait_for(server.app.client.store.add(tasks, idempotency_window=0))

    depths = values(families(server.admin.get("/metrics")), "holdfast_queue_depth", *DEPTH)

    assert len({queue for queue, _ in depths}) == MOST_QUEUES + 1
    assert sum(depths.values()) == 10_003
    assert depths["q7777", "normal"] == 4
    assert depths[OTHERS, "normal"] == 10_000 - MOST_QUEUES


def test_what_workers_over_http_run_is_counted_by_their_server(server: LiveServer) -> None:
    worker, base = server.client("worker"), "/internal/workers"
    words = {"capacity": 10, "queues": ["js"]}
    me = worker.post(f"{base}/register", json=words).json()["worker_id"]
    for lock in ("a", "b"):
        task = {"task_type": "resize", "queue": "js", "parameters": {}, "lock": lock}
        server.admin.post("/api/v1/tasks", json=task)
    ask = {"available_capacity": 10, "wait_seconds": 0}
    tasks = worker.post(f"{base}/{me}/poll", json=ask).json()["tasks"]
    ends: list[dict[str, Json]] = [
        {"status": "completed"},
        {"status": "failed", "error": {"type": "E", "message": "m"}},
    ]
    for task, end in zip(tasks, ends, strict=True):
        said = {"task_id": task["task_id"], "attempt": task["attempt"], **end}
        for _ in range(2):  # a repeat is known again
            assert worker.post(f"{base}/{me}/result", json=said).status_code == 200

    counts = tally_of(server.app.client.store).counts()

    assert counts.number(metrics.TASK_STATES, "running") == 2
    assert counts.number(metrics.TASK_STATES, "completed") == 1
    assert counts.number(metrics.RETRIES, "error", "normal") == 1
    assert counts.spread(metrics.WAITS, "normal").count == 2
    assert counts.spread(metrics.LOCK_WAITS).count == 2
    assert counts.spread(metrics.DURATIONS, "normal", "completed").count == 1
    assert counts.spread(metrics.DURATIONS, "normal", "error").count == 1
    assert counts.spread(metrics.LATENCY, "claim").count >= 1


def test_metrics_of_one_kind_have_their_names(server: LiveServer) -> None:
    found = families(server.admin.get("/metrics"))

    for metric in METRICS:
        family = found.get(metric.full_name) or found[metric.full_name.removesuffix("_total")]
        assert family.documentation == metric.says
        assert (family.type == "histogram") is (metric.kind is Kind.HISTOGRAM)
