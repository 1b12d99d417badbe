"""What we want to reach in the rounds, on PostgreSQL and on SQLite."""

from __future__ import annotations

from bench.peers.roster import BARE, CELERY, HOLDFAST, HOLDFAST_SQLITE, HUEY_SQLITE, PGQUEUER
from bench.rounds import BETWEEN, WITHIN
from bench.samples import BEST, BULK, CALLERS, ONE, SUBMIT, Samples
from bench.sqlite import BATCHES, RAW
from bench.target import Target


def targets(samples: Samples) -> list[Target]:
    """Every target of the part on PostgreSQL."""
    us = HOLDFAST.title
    best = samples.median(us, ONE, BEST)
    return [
        _rate("drain, tasks/s", best, 30_000),
        _times("drain / PGQueuer, one process each", samples, (us, ONE), (PGQUEUER.title, ONE), 3),
        _ratio("drain / PGQueuer, best against best", best, _best(samples, PGQUEUER.title), 2),
        _ratio("drain / Celery, best against best", best, _best(samples, CELERY.title), 30),
        _ratio(
            "drain / raw SQL, sharing the cores with Python", best, _best(samples, BETWEEN), 0.5
        ),
        _ratio("drain / raw SQL inside the server", best, _best(samples, WITHIN), 0.5),
        _rate("bulk submit, tasks/s", samples.median(us, BULK), 50_000),
        _rate("single submits by 8 callers, tasks/s", samples.median(us, CALLERS), 4_000),
        *_pick_up(samples, us, p50=3.0, p99=15.0),
        _pick_up_ratio(samples, us, BARE.title),
    ]


def sqlite_targets(samples: Samples) -> list[Target]:
    """Every target of the part on SQLite."""
    us, huey = HOLDFAST_SQLITE.title, HUEY_SQLITE.title
    best = _best(samples, us)
    return [
        _rate("drain, tasks/s", best, 15_000),
        *(
            _ratio(f"drain / raw SQL in batches of {batch:,}", best, samples.median(RAW, case), 0.4)
            for case, batch in BATCHES.items()
        ),
        _ratio("drain / Huey, best against best", best, _best(samples, huey), 6),
        _times("submit one by one / Huey", samples, (us, SUBMIT), (huey, SUBMIT), None),
        *_pick_up(samples, us, p50=5.0),
    ]


def _best(samples: Samples, product: str) -> float | None:
    return samples.median(product, ONE, BEST)


def _rate(what: str, value: float | None, limit: float) -> Target:
    return Target(what=what, wanted=f">= {limit:,.0f}", value=value, limit=limit)


def _ratio(what: str, ours: float | None, theirs: float | None, limit: float | None) -> Target:
    value = ours / theirs if ours is not None and theirs else None
    wanted = "" if limit is None else f">= {limit:g}"
    return Target(what=what, wanted=wanted, value=value, limit=limit, form="{:.2f}")


def _times(
    what: str, samples: Samples, ours: tuple[str, str], theirs: tuple[str, str], limit: float | None
) -> Target:
    return _ratio(what, samples.median(*ours), samples.median(*theirs), limit)


def _pick_up(samples: Samples, product: str, **limits: float) -> list[Target]:
    live = samples.lives.get(product)
    return [
        Target(
            what=f"pick-up, {name}, ms",
            wanted=f"<= {limit:g}",
            value=getattr(live, f"{name}_ms") if live else None,
            limit=limit,
            at_most=True,
            form="{:.1f}",
        )
        for name, limit in limits.items()
    ]


def _pick_up_ratio(samples: Samples, ours: str, theirs: str) -> Target:
    """How many times as long as the least that it can be; only to be read beside the others."""
    one, other = samples.lives.get(ours), samples.lives.get(theirs)
    return _ratio(
        "pick-up, p50 / raw SQL with LISTEN/NOTIFY",
        one.p50_ms if one else None,
        other.p50_ms if other else None,
        None,
    )
