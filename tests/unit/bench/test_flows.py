"""The table of compositions: peers stand beside Holdfast, and what they lack or fail is shown."""

from __future__ import annotations

from bench.environments import Unavailable
from bench.flows import CHAIN, GROUP, PLAIN, WORKFLOW, Flows, of_peers, text
from bench.machine import Watch
from bench.samples import Samples
from bench.size import QUICK

HOLDFAST = Flows("SQLite", {PLAIN: [100.0], GROUP: [80.0], CHAIN: [2.5], WORKFLOW: [90.0]})


def _fails() -> float:
    raise Unavailable("could not be installed: no such wheel")


def test_rates_of_peers_come_in_the_units_of_the_table() -> None:
    samples = Samples(Watch())
    samples.rate("Celery, Redis", "chain", lambda: 500.0)
    samples.rate("DBOS, PostgreSQL", "workflow", lambda: 30.0)

    celery, _, dbos = of_peers(samples)

    assert celery.figures == {CHAIN: [2.0]}
    assert dbos.figures == {WORKFLOW: [300.0]}


def test_what_a_peer_lacks_is_empty_and_what_failed_says_so() -> None:
    samples = Samples(Watch())
    samples.rate("DBOS, PostgreSQL", "plain", lambda: 300.0)
    samples.rate("DBOS, PostgreSQL", "workflow", _fails)

    page = text([HOLDFAST, *of_peers(samples)], QUICK)

    assert "| SQLite | 100 (1.00) | 80 (0.80) | 2.50 | 90 (0.90) |\n" in page
    assert "| DBOS, PostgreSQL | 300 (1.00) | | | failed |\n" in page
