"""One behaviour, many stores: the same random life, lived on two stores, looks the same.

After every step everything that can be read is compared: tasks, numbers, workers, orphans, cancel
requests, and at the end every attempt and event.
"""

from __future__ import annotations

import random
import secrets

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pymongo import MongoClient
from tests.conformance.life import Life
from tests.conformance.pair import Pair
from tests.kit.servers.mongo import GivenMongo, MongoServer

from holdfast.stores.mongo.store import MongoStore
from holdfast.stores.postgres.store import PostgresStore

draws = st.randoms(use_true_random=True)


class TwoStores(RuleBasedStateMachine):
    """Hypothesis chooses what happens in which order, and shortens a life that went wrong."""

    life: Life | None = None

    @initialize()
    def open(self) -> None:
        self.life = Life(Pair())

    def teardown(self) -> None:
        if self.life:
            self.life.pair.compare_histories()
            self.life.pair.close()

    @invariant()
    def the_stores_look_the_same(self) -> None:
        if self.life:
            self.life.pair.compare()

    @rule(draw=draws)
    def submit(self, draw: random.Random) -> None:
        self._life.submit(draw)

    @rule(draw=draws)
    def run_some(self, draw: random.Random) -> None:
        self._life.run_some(draw)

    @rule(draw=draws)
    def hold_some(self, draw: random.Random) -> None:
        self._life.hold_some(draw)

    @rule(draw=draws)
    def settle_held(self, draw: random.Random) -> None:
        self._life.settle_held(draw)

    @rule(draw=draws)
    def report(self, draw: random.Random) -> None:
        self._life.report(draw)

    @rule(draw=draws)
    def let_time_pass(self, draw: random.Random) -> None:
        self._life.let_time_pass(draw)

    @rule(draw=draws)
    def operate(self, draw: random.Random) -> None:
        self._life.operate(draw)

    @rule(draw=draws)
    def change_workers(self, draw: random.Random) -> None:
        self._life.change_workers(draw)

    @rule(draw=draws)
    def change_gates(self, draw: random.Random) -> None:
        self._life.change_gates(draw)

    @rule(draw=draws)
    def look(self, draw: random.Random) -> None:
        self._life.look(draw)

    @property
    def _life(self) -> Life:
        assert self.life
        return self.life


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(
    max_examples=8,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("seed", range(4))
def test_a_long_life_looks_the_same_on_both_stores(seed: int) -> None:
    live(Pair(), seed, steps=200)


@pytest.mark.parametrize("seed", range(2))
def test_a_life_on_postgresql_looks_the_same(fresh_schema: str, seed: int) -> None:
    live(Pair(lambda clock: PostgresStore(fresh_schema, clock=clock)), seed, steps=120)


@pytest.mark.parametrize("seed", range(2))
def test_a_life_on_mongodb_looks_the_same(
    mongo_server: MongoServer | GivenMongo, seed: int
) -> None:
    name = f"life_{secrets.token_hex(6)}"
    url = mongo_server.url(name)

    try:
        live(Pair(lambda clock: MongoStore(url, clock=clock)), seed, steps=60)
    finally:
        client: MongoClient[dict[str, object]] = MongoClient(url)
        with client:
            client.drop_database(name)


def live(pair: Pair, seed: int, *, steps: int) -> None:
    draw = random.Random(seed)
    life = Life(pair)
    acts = {
        life.submit: 4,
        life.run_some: 4,
        life.hold_some: 3,
        life.settle_held: 3,
        life.report: 2,
        life.let_time_pass: 3,
        life.operate: 4,
        life.change_workers: 1,
        life.change_gates: 2,
        life.look: 1,
    }

    for act in draw.choices(list(acts), list(acts.values()), k=steps):
        act(draw)
        life.pair.compare()
    life.pair.compare_histories()
    life.pair.close()
