"""Peers that make work of work, for `bench/flows.py`: what each can do of it, and how much of it is
measured. Doses are smaller than Holdfast's: a few seconds' worth of each.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial

from bench.peers import contest
from bench.peers.bodies import STEPS
from bench.peers.match import Arena
from bench.peers.roster import CELERY, DBOS, DRAMATIQ, Peer
from bench.samples import Samples
from bench.size import Size
from bench.table import table

HEAD = """
How the peers were measured, in smaller doses, with one worker process each and results kept.
Redis is without persistence, its quickest; PostgreSQL with `fsync` and `synchronous_commit` on.
In Celery and Dramatiq the end is the start of one more task or link, or of the call after \
a group; in DBOS it is the return of the last workflow.
In Celery and Dramatiq a link carries all links after it, so it costs more the longer the chain is.
An empty cell above has its reason here:

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composer:
    """One peer, and how much of each kind it does in a round; a kind that it lacks is left out."""

    peer: Peer
    doses: dict[str, int]
    how: str
    lacks: str

    def dose(self, kind: str, size: Size) -> int:
        """A chain is as long in a quick run: its links cost more the longer it is."""
        return int(self.doses[kind] * (1.0 if kind == "chain" else size.share))


COMPOSERS = (
    Composer(
        peer=CELERY,
        doses={"plain": CELERY.drained, "group": CELERY.drained, "chain": 1_000},
        how="`chord` and `chain`; solo worker, prefetch multiplier 128, no gossip, no mingle",
        lacks="steps: a task that is interrupted starts from its beginning",
    ),
    Composer(
        peer=replace(DRAMATIQ, one=DRAMATIQ.usual),
        doses={"plain": DRAMATIQ.drained, "group": DRAMATIQ.drained, "chain": 400},
        how="`group` with a completion callback and `pipeline`; 1 process of 8 threads: 16 compete "
        "for a group's counter, and are slower. At 1,000 links, which are nested, its encoder "
        "reaches Python's limit of recursion",
        lacks="steps: a task that is interrupted starts from its beginning",
    ),
    Composer(
        peer=DBOS,
        doses={"plain": DBOS.drained, "workflow": DBOS.drained // STEPS},
        how=f"workflows, plain ones without a step; {DBOS.settings}",
        lacks="chains and groups: a workflow itself calls what is next, and waits for the handles "
        "of what it has started",
    ),
)


def measure(samples: Samples, arena: Arena, size: Size) -> None:
    """All rounds. Rates are parts a second, by the peer's title and the kind of composition."""
    for number in range(1, size.rounds + 1):
        print(f"flows of peers: round {number} of {size.rounds}", file=sys.stderr, flush=True)
        for one in COMPOSERS:
            for kind in one.doses:
                count = one.dose(kind, size)
                rate = partial(contest.composed, one.peer, arena, kind, count)
                samples.rate(one.peer.title, kind, rate)


def text(size: Size) -> str:
    """What was measured of each, and how."""
    rows = [(one.peer.title, one.how, _doses(one, size), one.lacks) for one in COMPOSERS]
    return HEAD + table(("", "how", "parts", "has no"), rows, numbers=False)


def _doses(one: Composer, size: Size) -> str:
    return ", ".join(f"{kind} {one.dose(kind, size):,}" for kind in one.doses)
