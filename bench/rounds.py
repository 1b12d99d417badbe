"""The part on PostgreSQL: limit, product and peers take turns within each round.

Absolute figures belong to the machine and the minute. What comes minutes apart cannot be compared,
so every round measures all of them once, and the medians of the rounds are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import partial

from bench.limits import postgres as raw
from bench.peers import contest
from bench.peers.match import Arena
from bench.peers.roster import BARE, HOLDFAST, PEERS, Peer
from bench.samples import BEST, BULK, CALLERS, ONE, RESULTS, SUBMIT, Samples
from bench.servers import Postgres
from bench.size import Size

WITHIN = "raw SQL, inside the server"
BETWEEN = "raw SQL, rows to Python and back"
RAW_DATABASE = "bench_raw"


def play(samples: Samples, arena: Arena, only: Collection[str], size: Size) -> None:
    """All rounds, then pick-up and idle cost of each product once."""
    chosen = [peer for peer in (HOLDFAST, *PEERS) if peer.key in only]
    rounds = size.rounds if chosen or "limit" in only else 0
    for number in range(1, rounds + 1):
        print(f"PostgreSQL and peers: round {number} of {size.rounds}", file=sys.stderr)
        if "limit" in only:
            limits(samples, arena, size)
        for peer in chosen:
            one_round(samples, peer, arena, size.share)
    for peer in (*([BARE] if "limit" in only else ()), *chosen):
        samples.live(
            peer.title, partial(contest.live, peer, arena, size.pick_ups, size.idle_seconds)
        )


def limits(samples: Samples, arena: Arena, size: Size) -> None:
    """The raw limit, with the columns of a drain: one and two sessions, one and two clients."""
    assert arena.postgres is not None
    for count, case in ((1, ONE), (2, BEST)):
        samples.rate(WITHIN, case, partial(_within, arena.postgres, size.raw_tasks, count))
        samples.rate(BETWEEN, case, partial(_between, arena.postgres, size.raw_tasks, count))
    arena.postgres.drop(RAW_DATABASE)


def _within(server: Postgres, tasks: int, sessions: int) -> float:
    return raw.within(server.fresh(RAW_DATABASE), tasks, sessions=sessions)


def _between(server: Postgres, tasks: int, processes: int) -> float:
    return raw.between(server.fresh(RAW_DATABASE), tasks, processes=processes)


def one_round(samples: Samples, peer: Peer, arena: Arena, share: float) -> None:
    """Each case of one product once."""
    name, drain = peer.title, partial(contest.drain, peer, arena, share=share)
    samples.rate(name, SUBMIT, partial(contest.submit_rate, peer, arena, share=share))
    if peer is HOLDFAST:
        submit = partial(contest.submit_rate, peer, arena, share=4 * share, callers=8)
        samples.rate(name, CALLERS, submit)
    if peer.bulk:
        samples.rate(name, BULK, partial(contest.bulk_rate, peer, arena, share=share))
    samples.drain(name, ONE, partial(drain, peer.one))
    samples.drain(name, BEST, partial(drain, peer.best))
    if peer.keeps == "results":
        samples.drain(name, RESULTS, partial(drain, peer.best, results=True))
