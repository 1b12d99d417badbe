"""What a trial goes through. When it ends, everything must have been kept.

The tests give small doses and one ordeal after the other, `make soak` large ones.
"""

from __future__ import annotations

import random
import signal
import time
from functools import partial

from tests.acceptance.load import Trial, assert_calm, said_since
from tests.acceptance.stage import WorkerProcess, until
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Fate, Proxy

CUTS = [Fate.LOSE_REQUEST, Fate.LATE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER]


def crash(trial: Trial, server: PostgresServer, *, times: int) -> None:
    """The server is restarted as after a crash, again and again."""
    for _ in range(times):
        server.restart("immediate")
        trial.came_back(100)


def stay_away(trial: Trial, server: PostgresServer, *, seconds: float) -> None:
    """The server goes in good order and comes back later; the workers say little meanwhile."""
    refused = trial.load.refused
    before = [worker.said() for worker in trial.workers]
    began = time.monotonic()
    server.restart("fast", away=seconds)
    away = time.monotonic() - began
    said = [said_since(*each) for each in zip(trial.workers, before, strict=True)]
    trial.came_back(100)
    for each in said:
        assert_calm(each, seconds=away)
        assert "store.lost" in each
        assert server.password not in each
    assert trial.load.refused > refused


def die(trial: Trial, server: PostgresServer) -> None:
    """kill -9 of every process of the server."""
    server.kill9()
    server.start()
    trial.came_back(100)


def throw_out(trial: Trial, server: PostgresServer, *, times: int) -> None:
    """Every backend is terminated, again and again."""
    for _ in range(times):
        assert server.terminate_backends() > 0
        trial.came_back(50)


def cut(trial: Trial, proxy: Proxy, *, tasks: int, seed: int) -> None:
    """Of a hundred requests three meet a cut at the commit or an answer 200 ms late."""
    rng = random.Random(seed)
    fates = [*CUTS, Fate.DELAY]
    proxy.rule = lambda sql: rng.choice(fates) if rng.random() < 0.03 else None
    trial.progress(tasks)
    proxy.rule = lambda sql: None


def stall(trial: Trial, proxy: Proxy, *, seconds: float, times: int) -> None:
    """Nothing passes for a while, and nothing is closed."""
    for _ in range(times):
        proxy.stall()
        time.sleep(seconds)  # this is the length of the stall, not a wait for anything
        proxy.resume()
        trial.progress(100)


def silence(trial: Trial, proxy: Proxy, *, times: int) -> None:
    """Connections of claims, saves and beats fall silent for good: no answer, and no end."""
    for _ in range(times):
        for verb in (r"\bclaim", r"\bsave", r"\bbeat"):
            ambush = proxy.ambush(verb, Fate.STALL)
            assert ambush.sprung.wait(30)
            trial.progress(20)


def leave_without(trial: Trial, server: PostgresServer | MongoServer) -> None:
    """Workers that run nothing are told to leave while the server is away: they do, and say so."""
    trial.end()
    before = [worker.said() for worker in trial.workers]
    server.kill9()
    for each in zip(trial.workers, before, strict=True):
        until(partial(_has_lost_it, *each))
    for worker in trial.workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in trial.workers] == [0] * len(trial.workers)
    server.start()
    assert trial.stage.broken(trial.load.acknowledged) == []


def _has_lost_it(worker: WorkerProcess, before: str) -> bool:
    return "store.lost" in said_since(worker, before)
