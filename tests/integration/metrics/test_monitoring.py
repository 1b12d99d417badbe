"""The rules and the dashboard that we ship work in a real Prometheus that scrapes a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app
from tests.kit.servers.prometheus import Prometheus, program
from tests.unit.house.pages import ROOT

from holdfast import Holdfast
from holdfast.core.alerts import RULES
from holdfast.core.metrics import METRICS, Kind

RULES_FILE = ROOT / "deploy/prometheus/holdfast.rules.yml"
DASHBOARD = json.loads((ROOT / "deploy/grafana/holdfast.json").read_text())
QUERIES = [
    pytest.param(panel["title"], target["expr"], id=f"{panel['title']} {target['refId']}")
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
]
MAY_BE_EMPTY = {"Promoted by waiting"}
"""Tables of what has happened never here."""


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        [program("promtool"), *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_those_of_the_code() -> None:
    command = [sys.executable, "scripts/monitoring.py", "--check"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_prometheus_understands_the_rules_and_the_example() -> None:
    number = sum(3 if metric.kind is Kind.HISTOGRAM else 1 for metric in METRICS) + len(RULES)

    assert f"{number} rules found" in promtool("check", "rules", str(RULES_FILE))
    promtool("check", "config", "--syntax-only", "deploy/prometheus/prometheus.yml")


def test_every_alert_is_raised_above_its_limit_and_not_at_it() -> None:
    tests = ROOT / "deploy/prometheus/holdfast.rules.test.yml"

    promtool("test", "rules", str(tests))

    text = tests.read_text()
    untried = [rule.name for rule in RULES if text.count(f"alertname: {rule.name}") < 2]
    assert untried == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    app = make_app(f"sqlite:///{tmp_path_factory.mktemp('monitored')}/tasks.db")

    @app.task(name="shop.broken", max_retries=1, retry="fixed(10ms)")
    def broken() -> None:
        raise ValueError

    with serve(app) as live:
        yield live


def work(app: Holdfast, server: LiveServer) -> None:
    """Something of everything that can be counted."""
    for number in range(5):
        app.submit_by_name("shop.add", {"a": number})
        app.submit_by_name("shop.broken", {})
        app.submit_by_name("shop.order", {"customer": 1, "items": []})
    server.work()
    app.submit_by_name("shop.mail", {"to": "anna"})  # one stays in line


@pytest.fixture(scope="module")
def prometheus(
    server: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    target = server.url.removeprefix("http://")
    folder = tmp_path_factory.mktemp("prometheus")
    server.work()
    with Prometheus(folder, target, server.token("read"), RULES_FILE) as running:
        for _ in range(2):
            seen = _scrapes(running)
            work(server.app, server)
            server.until(lambda seen=seen: _scrapes(running) > seen + 2)  # type: ignore[misc]
        server.until(lambda: len(running.query("task_state_total")) > 2)
        yield running


def _scrapes(prometheus: Prometheus) -> int:
    found = prometheus.query("count_over_time(holdfast_workers_total{status='active'}[5m])")
    return int(found[0]["value"][1]) if found else 0


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_every_query_of_the_dashboard_is_answered(
    prometheus: Prometheus, title: str, query: str
) -> None:
    found = prometheus.query(query.replace("$__rate_interval", "1m"))

    assert found or title in MAY_BE_EMPTY


def test_the_dashboard_shows_every_metric() -> None:
    queries = " ".join(str(query.values[1]) for query in QUERIES)

    assert [metric.name for metric in METRICS if metric.full_name not in queries] == []


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_rule_is_evaluated_without_an_error(prometheus: Prometheus, server: Any) -> None:
    def evaluated() -> bool:
        return all(rule["health"] == "ok" for rule in prometheus.rules())

    server.until(evaluated)
    rules = {rule["name"]: rule for rule in prometheus.rules()}
    assert rules.keys() >= {rule.name for rule in RULES}
    assert rules["HoldfastFailures"]["state"] == "firing"
    assert rules["HoldfastBacklog"]["state"] == "inactive"


def test_every_recorded_name_has_a_value(prometheus: Prometheus) -> None:
    names = [rule["name"] for rule in prometheus.rules() if rule["type"] == "recording"]

    assert [n for n in names if not prometheus.query(n)] in ([], ["tasks_promoted_total"])
