"""`holdfast bench`: how fast the configured store is on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.command import CommandFailed, Session, with_session
from holdfast.cli.places import sqlite_path, sqlite_url
from holdfast.cli.screen import Answer, Screen
from holdfast.core.task import Json

SPEEDS = ("submit", "submit_8_callers", "submit_bulk", "drain_1_process", "drain_2_processes")


@with_session
def bench(
    session: Session,
    tasks: Annotated[
        int, typer.Option("--tasks", min=1000, metavar="N", help="Drain so many.")
    ] = 20_000,
) -> Answer:
    """Measure how fast the store is here.

    Submit, drain, pick-up, idle cost and what the bare store could do at most, each on a scratch
    store beside yours, on the same disk.
    Your own data is not touched. Takes about a minute.
    """
    from holdfast.settings import Settings  # noqa: PLC0415

    results = measure_all(Settings.load(url=session.url).url, tasks)
    return Answer(results, lambda screen: _show(screen, results))


def measure_all(url: str, tasks: int) -> Json:
    """Every measurement, each on an empty store of the same kind, on the same disk."""
    from holdfast.cli import measure  # noqa: PLC0415
    from holdfast.wiring import raw_drain_rate  # noqa: PLC0415

    def fresh(work: Callable[[str], object]) -> Json:
        with scratch(url) as store:
            return _plain(work(store))

    few, some = max(20, tasks // 100), max(100, tasks // 10)
    return {
        "store": url.partition("://")[0],
        "submit": fresh(lambda store: measure.measure_submit(store, few)),
        "submit_8_callers": fresh(lambda store: measure.measure_submit(store, some, callers=8)),
        "submit_bulk": fresh(lambda store: measure.measure_bulk(store, tasks)),
        "drain_1_process": fresh(lambda store: measure.measure_drain(store, tasks)),
        "drain_2_processes": fresh(lambda store: measure.measure_drain(store, tasks, processes=2)),
        "pickup": fresh(lambda store: measure.measure_pickup(store, few)),
        "idle": fresh(lambda store: measure.measure_idle(store, 3.0)),
        "raw_limit_per_second": fresh(lambda store: raw_drain_rate(store, tasks)),
    }


@contextmanager
def scratch(url: str) -> Iterator[str]:
    """An empty store like the configured one and on the same disk; gone afterwards."""
    from holdfast.wiring import is_on_a_server, scratch_store  # noqa: PLC0415

    if is_on_a_server(url):
        with scratch_store(url) as fresh:
            yield fresh
        return
    path = sqlite_path(url)
    if path is None:
        raise CommandFailed(
            "store_not_supported",
            "bench makes a scratch store beside yours, but not for memory://. "
            "Give it --url sqlite:///file.db.",
        )
    beside = path.parent
    try:
        folder = tempfile.TemporaryDirectory(prefix=".holdfast-bench-", dir=beside)
    except OSError as error:
        raise CommandFailed(
            "no_scratch", f"cannot make a scratch store in {beside}: {error}"
        ) from None
    with folder as name:
        yield sqlite_url(Path(name) / "bench.db")


def _plain(result: object) -> Json:
    if result is None or isinstance(result, float):
        return result
    data = asdict(result)  # type: ignore[call-overload]  # one of measure's dataclasses
    speed = getattr(result, "per_second", None)
    return data if speed is None else data | {"per_second": speed}


def _show(screen: Screen, results: Json) -> None:
    rows = [
        (name.replace("_", " "), f"{results[name]['per_second']:,.0f} tasks/s") for name in SPEEDS
    ]
    pickup, idle = results["pickup"], results["idle"]
    times = (f"{name[:3]} {pickup[name]:.1f} ms" for name in ("p50_ms", "p95_ms", "p99_ms"))
    rows.append(("pick-up", ", ".join(times)))
    if idle is not None:
        cost = f"{idle['cpu_percent']:.2f} % CPU, {idle['rss_mib']:.0f} MiB"
        rows.append(("idle worker", f"{cost} in {idle['processes']} processes"))
    if (limit := results["raw_limit_per_second"]) is not None:
        share = results["drain_1_process"]["per_second"] / limit
        rows.append(("raw SQL limit of a drain", f"{limit:,.0f} tasks/s (1 process: {share:.0%})"))
    screen.table(("measured", "result"), rows)
