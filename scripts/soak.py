"""Break things under load for as long as you like, and count what was lost.

    make soak MINUTES=60
    python -m scripts.soak 60 kills-on-postgres cuts       # only these trials

Round after round on a fresh store, with real worker processes and one trial after the other: kill
-9 of workers on every store, and of Redis; a server that crashes, stays away, throws everybody out;
a network that cuts at the commit or stalls. Then the store is judged against what the tasks
themselves wrote down. One trial asks a real language model, a small one, about schedules. The parts
are those of the acceptance tests, in larger doses; the seed changes with every round. Stops at the
first broken promise, with the seed, and keeps its folder.
"""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from scripts import small_model
from tests.acceptance import load, ordeals, storm
from tests.acceptance.stage import Stage
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Proxy
from tests.kit.servers.redis import RedisServer
from tests.kit.simulation import run_history

from holdfast.core.task import Cause


def histories(_folder: Path, seed: int) -> str:
    for one in range(1_000 * seed, 1_000 * seed + 2_000):
        verdict = run_history(one)
        assert not verdict.broken, str(verdict)
    return "2,000 simulated histories keep every promise"


def kills_on_sqlite(folder: Path, seed: int) -> str:
    with closing(Stage(folder, **storm.SETTINGS)) as stage:
        return kills(stage, seed, tasks=3_000, seconds=15.0)


def kills_on_postgres(folder: Path, seed: int) -> str:
    with (
        PostgresServer() as server,
        closing(Stage(folder, url=server.create_database("soak"), **storm.SETTINGS)) as stage,
    ):
        return kills(stage, seed, tasks=20_000, seconds=30.0)


def kills_with_redis(folder: Path, seed: int) -> str:
    """Redis is killed, too, every few seconds, and comes back empty."""
    with (
        PostgresServer() as server,
        RedisServer() as redis,
        closing(
            Stage(
                folder,
                url=server.create_database("soak"),
                redis_url=redis.url,
                **storm.SETTINGS,
            )
        ) as stage,
        repeated(partial(kill_for_a_second, redis), every=3.0),
    ):
        return kills(stage, seed, tasks=20_000, seconds=30.0)


def kill_for_a_second(redis: RedisServer) -> None:
    redis.kill9()
    time.sleep(1.0)
    redis.start()


def kills_on_mongo(folder: Path, seed: int) -> str:
    with (
        MongoServer() as server,
        closing(Stage(folder, url=server.url("soak"), **storm.SETTINGS)) as stage,
    ):
        return kills(stage, seed, tasks=1_000, seconds=30.0)


def kills(stage: Stage, seed: int, *, tasks: int, seconds: float) -> str:
    toll = storm.kill_storm(stage, tasks=tasks, seconds=seconds, seed=seed)
    assert toll.broken == []
    again = toll.causes.count(Cause.WORKER_LOST)
    return f"{tasks} tasks, {toll.kills} kills, {again} started again"


def outage(folder: Path, seed: int, *, ordeal: Callable[..., None], **dose: float) -> str:
    with PostgresServer() as server:
        url = server.create_database("soak")
        with closing(Stage(folder, url=url, **load.SETTINGS)) as stage, load.Trial(stage) as trial:
            ordeal(trial, server, **dose)
            trial.end()
            return f"{len(trial.load.acknowledged)} tasks, {trial.load.refused} submits refused"


def network(folder: Path, seed: int, *, ordeal: Callable[..., None], **dose: float) -> str:
    with PostgresServer() as server, Proxy(server.port) as proxy:
        url = server.create_database("soak")
        way = server.url("soak", port=proxy.port)
        with (
            closing(Stage(folder, url=url, **load.SETTINGS)) as stage,
            load.Trial(stage, url=way) as trial,
        ):
            ordeal(trial, proxy, **(dose | {"seed": seed} if ordeal is ordeals.cut else dose))
            trial.end()
            return f"{len(trial.load.acknowledged)} tasks"


TRIALS: dict[str, Callable[[Path, int], str]] = {
    "histories": histories,
    "kills-on-sqlite": kills_on_sqlite,
    "kills-on-postgres": kills_on_postgres,
    "kills-with-redis": kills_with_redis,
    "kills-on-mongo": kills_on_mongo,
    "crashes": partial(outage, ordeal=ordeals.crash, times=5),
    "absence": partial(outage, ordeal=ordeals.stay_away, seconds=10.0),
    "thrown-out": partial(outage, ordeal=ordeals.throw_out, times=10),
    "cuts": partial(network, ordeal=ordeals.cut, tasks=3_000),
    "stalls": partial(network, ordeal=ordeals.stall, seconds=10.0, times=2),
    "silence": partial(network, ordeal=ordeals.silence, times=2),
    "small-model": small_model.misreadings,
}


def main(minutes: float, names: list[str]) -> int:
    end = time.monotonic() + 60 * minutes
    rounds = 0
    while time.monotonic() < end:
        name = names[rounds % len(names)]
        rounds += 1
        seed = secrets.randbelow(1_000_000)
        folder = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
        try:
            say(f"round {rounds}, {name}, seed {seed}: {TRIALS[name](folder, seed)}")
        except BaseException:
            say(f"BROKEN: round {rounds}, {name}, seed {seed}, kept in {folder}")
            raise
        shutil.rmtree(folder)
    say(f"{rounds} rounds: nothing lost, nothing recorded twice")
    return 0


@contextmanager
def repeated(action: Callable[[], None], *, every: float) -> Iterator[None]:
    """Do it again and again, in a thread of its own, until the block ends."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(every):
            action()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def closing(stage: Stage) -> Iterator[Stage]:
    try:
        yield stage
    finally:
        stage.close()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(float(given[0]) if given else 5.0, given[1:] or list(TRIALS)))
