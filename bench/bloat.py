"""Do the tables that tasks pass through stay small? Their size, while a real worker runs tasks.

Every stop is measured twice: the moment the last task has ended, which shows how far the tables had
to grow on the way, and at rest, which is what the tasks leave. Tables and indexes are told apart: a
B-tree fills the pages that were emptied, but its file never shrinks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers.match import Arena, match
from bench.peers.roster import HOLDFAST
from bench.servers import Postgres, ask_all
from bench.table import table
from bench.target import Target, verdicts

STEP = 50_000
"""Tasks that are submitted before the worker has to catch up."""
CATCH_UP = 100.0
REST = 30.0
"""Seconds without tasks before the tables are at rest: workers look at them every five."""
PAGE = 8192
INDEX_BOUND = 1.05
SIZES = """
SELECT
    c.relname,
    pg_relation_size(c.oid) + coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0),
    pg_indexes_size(c.oid) + coalesce(pg_indexes_size(nullif(c.reltoastrelid, 0)), 0)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND NOT c.relispartition
ORDER BY c.relname
"""
"""All tables but the two that keep history, which are the partitioned ones."""
ASKED = """
Asked was that "5,000,000 tasks through a table leave it no larger than after the first 500,000".
We read that of the tables that tasks pass through, half a minute after the last task: the first \
line.
The second is how far the same tables had to grow on the way, with tasks coming in steps of \
{step:,}: that depends on the moment at which a sweep ends.
The third bounds all indexes, on our own.
The last is everything together at rest: those tables, the few pages of those that keep counts, \
lanes and workers, and all indexes.
"""
BOTH = """
Pages of 8 KiB; all tables but the history, all indexes, and those with {least} pages or more:

"""
LEAST = 50
THROUGH = ("ready", "run", "waiting", "blocked")
"""The tables that tasks pass through; the others count them, or keep lanes, locks and workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloat:
    """Bytes of all tables but the history, and of their indexes, by table."""

    tasks: int
    at_rest: bool
    tables: dict[str, int]
    indexes: dict[str, int]

    @property
    def through_pages(self) -> int:
        """Of the tables that tasks pass through."""
        return sum(size for name, size in self.tables.items() if name in THROUGH) // PAGE

    @property
    def table_bytes(self) -> int:
        return sum(self.tables.values())

    @property
    def index_bytes(self) -> int:
        return sum(self.indexes.values())


def measure(server: Postgres, stops: tuple[int, ...]) -> list[Bloat]:
    """Send tasks through an empty store; the sizes at each stop, when all have finished, and when
    the tables had their rest."""
    found, through = [], 0
    with match(HOLDFAST, Arena(server)) as one, one.workers(HOLDFAST.one):
        url = one.variables["BENCH_POSTGRES"]
        for stop in stops:
            while through < stop:
                one.call("bulk", min(STEP, stop - through))
                through += min(STEP, stop - through)
                one.call("finished", through, CATCH_UP)
            found.append(_look(url, through, at_rest=False))
            time.sleep(REST)
            found.append(_look(url, through, at_rest=True))
    return found


def _look(url: str, tasks: int, *, at_rest: bool) -> Bloat:
    sizes = ask_all(url, SIZES)
    return Bloat(
        tasks=tasks,
        at_rest=at_rest,
        tables={name: size for name, size, _ in sizes},
        indexes={name: size for name, _, size in sizes},
    )


def targets(sizes: Sequence[Bloat]) -> list[Target]:
    """What was asked of the tables, and what we ask of the indexes."""
    first_busy, first, *_, last_busy, last = sizes
    when = f"after {last.tasks:,} tasks / after {first.tasks:,}"
    together = (last.table_bytes + last.index_bytes) / (first.table_bytes + first.index_bytes)
    return [
        Target(
            what=f"tables at rest, pages after {last.tasks:,} tasks less after {first.tasks:,}",
            wanted="<= 0",
            value=last.through_pages - first.through_pages,
            limit=0,
            at_most=True,
        ),
        _at_most(f"tables on the way, {when}", last_busy.through_pages / first_busy.through_pages),
        _at_most(f"indexes {when}", last.index_bytes / first.index_bytes, INDEX_BOUND),
        _at_most(f"everything {when}", together),
    ]


def _at_most(what: str, value: float, limit: float | None = None) -> Target:
    wanted = "" if limit is None else f"<= {limit:g}"
    return Target(what=what, wanted=wanted, value=value, limit=limit, at_most=True, form="{:.3f}")


def text(sizes: Sequence[Bloat]) -> str:
    """The part of the page: both figures, whichever is met."""
    busy = sizes[-2]
    large = [name for name in busy.tables if busy.tables[name] + busy.indexes[name] >= LEAST * PAGE]
    columns = [f"{kind} `{name}`" for name in large for kind in ("table", "indexes of")]
    rows = [
        (
            f"{size.tasks:,}{', at rest' if size.at_rest else ''}",
            *(f"{total // PAGE:,}" for total in (size.table_bytes, size.index_bytes)),
            *(
                f"{kind.get(name, 0) // PAGE:,}"
                for name in large
                for kind in (size.tables, size.indexes)
            ),
        )
        for size in sizes
    ]
    body = table(("tasks so far", "tables", "indexes", *columns), rows)
    return verdicts(targets(sizes)) + ASKED.format(step=STEP) + BOTH.format(least=LEAST) + body
