"""Do the tables that tasks pass through stay small? Their size, while a real worker runs tasks."""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers.match import Arena, match
from bench.peers.roster import HOLDFAST
from bench.servers import Postgres, ask

STEP = 50_000
"""Tasks that are submitted before the worker has to catch up."""
CATCH_UP = 100.0
SIZES = """
SELECT sum(pg_total_relation_size(c.oid))::bigint
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND NOT c.relispartition
"""
"""All tables but the two that keep history, which are the partitioned ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloat:
    """Bytes of the tables that tasks pass through, indexes included."""

    tasks: int
    bytes: int


def measure(server: Postgres, stops: tuple[int, ...]) -> list[Bloat]:
    """Send tasks through an empty store; the size at each stop, when all have finished."""
    found, through = [], 0
    with match(HOLDFAST, Arena(server)) as one, one.workers(HOLDFAST.one):
        for stop in stops:
            while through < stop:
                one.call("bulk", min(STEP, stop - through))
                through += min(STEP, stop - through)
                one.call("finished", through, CATCH_UP)
            size = int(ask(one.variables["BENCH_POSTGRES"], SIZES))
            found.append(Bloat(tasks=through, bytes=size))
    return found
