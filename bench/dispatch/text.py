"""The part of the page about what wakes a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median, quantiles

from bench.dispatch.measure import CALLERS, Found, Use
from bench.dispatch.ways import BARE_LISTEN, BARE_REDIS, LISTEN, REDIS
from bench.table import spread, table
from bench.target import Target, verdicts

P50, P99 = 2.0, 8.0

ALONE = """
All with the same store, PostgreSQL with `fsync` and `synchronous_commit` on, and the same worker; \
only what wakes it differs.
Redis keeps nothing on disk.

One task at a time, at random moments: milliseconds from the submit call in one process to the \
body's first line in another, tasks of all rounds together, and what such a task costs the servers \
from the submit to its stored end.
Raw SQL is the least that it can be: one durable insert, a call, one durable claim, nothing else.

"""
BUSY = """
In a stream, {callers} callers submit one task at a time while a worker process runs them, from \
the first submit to the last stored end; a drain is of a backlog that was there before.
Tasks per second: median (lowest..highest) of the rounds.

"""
IDLE = """
With nothing to do, in percent of a core: a worker with its supervisor, and the servers.

"""
FAILED = """
Not measured:

"""


def text(found: Mapping[str, Found], failures: Mapping[str, str]) -> str:
    ours = {title: one for title, one in found.items() if one.streams}
    parts = [verdicts(targets(found)), ALONE, _alone(found)]
    parts += [BUSY.format(callers=CALLERS), _busy(ours), IDLE, _idle(ours)]
    if failures:
        parts += [FAILED, table(("", "why"), failures.items(), numbers=False)]
    return "".join(parts)


def targets(found: Mapping[str, Found]) -> list[Target]:
    """What Redis should bring, and beside it what is there without."""
    mine, other = found.get(REDIS.title), found.get(LISTEN.title)
    cuts, without = _cuts(mine), _cuts(other)
    return [
        _ms("pick-up with Redis, p50, ms", cuts, 50, P50),
        _ms("pick-up with Redis, p99, ms", cuts, 99, P99),
        _ms("with LISTEN/NOTIFY, p50, ms", without, 50, None),
        _ms("with LISTEN/NOTIFY, p99, ms", without, 99, None),
        _share("pick-up with Redis, p50 / raw SQL", mine, found.get(BARE_REDIS.title), _p50),
        _share("with LISTEN/NOTIFY, p50 / raw SQL", other, found.get(BARE_LISTEN.title), _p50),
        _share("PostgreSQL CPU for a single task, Redis / LISTEN", mine, other, _single_cpu),
        _share("stream, tasks/s, Redis / LISTEN", mine, other, _stream_rate),
        _share("drain, tasks/s, Redis / LISTEN", mine, other, _drain_rate),
    ]


def _ms(what: str, cuts: Sequence[float], percent: int, limit: float | None) -> Target:
    return Target(
        what=what,
        wanted="" if limit is None else f"<= {limit:g}",
        value=cuts[percent - 1] if cuts else None,
        limit=limit,
        at_most=True,
        form="{:.2f}",
    )


def _share(
    what: str, mine: Found | None, other: Found | None, figure: Callable[[Found], float]
) -> Target:
    value = figure(mine) / figure(other) if mine and other else None
    return Target(what=what, wanted="", value=value, limit=None, form="{:.2f}")


def _cuts(found: Found | None) -> Sequence[float]:
    """Percentiles of the waits in milliseconds."""
    if found is None:
        return ()
    return quantiles([wait * 1000 for wait in found.waits], n=100, method="inclusive")


def _p50(found: Found) -> float:
    return _cuts(found)[49]


def _single_cpu(found: Found) -> float:
    return sum(use.postgres for use in found.singles) / len(found.waits) * 1e6


def _stream_rate(found: Found) -> float:
    return median(one.per_second for one in found.streams)


def _drain_rate(found: Found) -> float:
    return median(one.per_second for one in found.drains)


def _alone(found: Mapping[str, Found]) -> str:
    head = ("", "p50", "p95", "p99", "tasks", "PostgreSQL CPU µs", "WAL bytes", "Redis CPU µs")
    rows = []
    for title, one in found.items():
        cuts, tasks = _cuts(one), len(one.waits)
        rows.append(
            (
                title,
                *(f"{cuts[percent - 1]:,.2f}" for percent in (50, 95, 99)),
                f"{tasks:,}",
                f"{_single_cpu(one):,.0f}",
                f"{sum(use.wal for use in one.singles) / tasks:,.0f}",
                _redis(title, sum(use.redis for use in one.singles) / tasks * 1e6),
            )
        )
    return table(head, rows)


def _busy(found: Mapping[str, Found]) -> str:
    head = (
        "", "stream", "PostgreSQL CPU µs", "WAL bytes", "Redis CPU µs", "drain",
        "PostgreSQL CPU µs", "WAL bytes",
    )  # fmt: skip
    rows = [
        (
            title,
            spread([s.per_second for s in one.streams]),
            f"{median(s.postgres_us for s in one.streams):,.0f}",
            f"{median(s.wal_bytes for s in one.streams):,.0f}",
            _redis(title, median(s.redis_us for s in one.streams)),
            spread([d.per_second for d in one.drains]),
            f"{median(d.server_cpu_us for d in one.drains):,.0f}",
            f"{median(d.wal_bytes or 0.0 for d in one.drains):,.0f}",
        )
        for title, one in found.items()
    ]
    return table(head, rows)


def _idle(found: Mapping[str, Found]) -> str:
    rows = [
        (
            title,
            _percent(one.idles, lambda use: use.workers),
            _percent(one.idles, lambda use: use.postgres),
            _percent(one.idles, lambda use: use.redis) if title == REDIS.title else "",
        )
        for title, one in found.items()
    ]
    return table(("", "worker", "PostgreSQL", "Redis"), rows)


def _percent(uses: Iterable[Use], figure: Callable[[Use], float]) -> str:
    chosen = list(uses)
    return f"{100 * sum(map(figure, chosen)) / sum(use.at for use in chosen):.1f}"


def _redis(title: str, value: float) -> str:
    return f"{value:,.0f}" if title in {REDIS.title, BARE_REDIS.title} else ""
