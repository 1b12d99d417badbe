"""What a trial goes through: each ordeal ends with everything kept, or with an AssertionError.

The tests give small doses, `make soak` large ones.
"""

from __future__ import annotations

import random
import signal
import time

from tests.acceptance.load import Trial, assert_calm, assert_prompt, now, said_since
from tests.acceptance.stage import Stage, until
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Fate, Proxy

CUTS = [Fate.LOSE_REQUEST, Fate.LATE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER]


def crash(trial: Trial, server: PostgresServer, *, times: int = 3) -> None:
    """The server is restarted as after a crash, again and again."""
    returns = []
    for _ in range(times):
        server.restart("immediate")
        returns.append(now())
        trial.progress(100)
    pictures = trial.end()
    for returned in returns:
        assert_prompt(pictures, returned)


def stay_away(trial: Trial, server: PostgresServer, *, seconds: float) -> None:
    """The server goes in good order and comes back later; the workers say little meanwhile."""
    before = [worker.said() for worker in trial.workers]
    began = time.monotonic()
    server.restart("fast", away=seconds)
    returned, away = now(), time.monotonic() - began
    said = [said_since(*each) for each in zip(trial.workers, before, strict=True)]
    trial.progress(100)
    assert_prompt(trial.end(), returned)
    for each in said:
        assert_calm(each, seconds=away)
        assert "store.lost" in each
        assert server.password not in each
    assert trial.load.refused > 0


def die(trial: Trial, server: PostgresServer) -> None:
    """kill -9 of every process of the server."""
    server.kill9()
    server.start()
    returned = now()
    trial.progress(100)
    assert_prompt(trial.end(), returned)


def throw_out(trial: Trial, server: PostgresServer, *, times: int = 5) -> None:
    """Every backend is terminated, again and again."""
    returns = []
    for _ in range(times):
        assert server.terminate_backends() > 0
        returns.append(now())
        trial.progress(50)
    pictures = trial.end()
    for returned in returns:
        assert_prompt(pictures, returned)


def cut(trial: Trial, proxy: Proxy, *, tasks: int, seed: int) -> None:
    """Of a hundred requests three meet a cut at the commit or an answer 200 ms late."""
    rng = random.Random(seed)
    fates = [*CUTS, Fate.DELAY]
    proxy.rule = lambda sql: rng.choice(fates) if rng.random() < 0.03 else None
    trial.progress(tasks)
    proxy.rule = lambda sql: None
    trial.end()


def stall(trial: Trial, proxy: Proxy, *, seconds: float, times: int = 2) -> None:
    """Nothing passes for a while, and nothing is closed."""
    for _ in range(times):
        proxy.stall()
        time.sleep(seconds)  # this is the length of the stall, not a wait for anything
        proxy.resume()
        trial.progress(100)
    trial.end()


def silence(trial: Trial, proxy: Proxy, *, times: int = 3) -> None:
    """Connections of claims, saves and beats fall silent for good: no answer, and no end."""
    for _ in range(times):
        for verb in (r"\bclaim", r"\bsave", r"\bbeat"):
            ambush = proxy.ambush(verb, Fate.STALL)
            assert ambush.sprung.wait(30)
            trial.progress(20)
    trial.end()


def leave_without(stage: Stage, server: PostgresServer | MongoServer) -> None:
    """Workers that run nothing are told to leave while the server is away: they do, and say so."""
    workers = [stage.worker("-c", "2") for _ in range(2)]
    done = [stage.shop.nap.submit(0.0) for _ in range(6)]
    until(lambda: stage.finished() == len(done))
    server.kill9()
    until(lambda: all("store.lost" in worker.said() for worker in workers))
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait(30) for worker in workers] == [0] * len(workers)
    server.start()
    assert stage.broken([handle.id for handle in done]) == []
