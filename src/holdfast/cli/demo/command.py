"""The command `holdfast demo` and its closing table."""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Session, with_session
from holdfast.cli.screen import Answer, Screen

if TYPE_CHECKING:
    from holdfast.cli.demo.run import DemoResult
    from holdfast.cli.demo.setup import DemoSetup
    from holdfast.cli.demo.show import Show


@with_session
def demo(
    session: Session,
    tasks: Annotated[int, typer.Option("--tasks", min=20, metavar="N", help="How many.")] = 800,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Repeat an earlier mix of tasks.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the store, the journal and the log to look at.")
    ] = False,
) -> Answer:
    """See it work, and survive a kill -9.

    Runs a mix of tasks on a fresh store with two workers, kills one of them half way, and counts:
    nothing may be lost, nothing recorded twice. Exit code 0 only if every promise held.
    """
    from holdfast.cli.demo.run import run_demo  # noqa: PLC0415
    from holdfast.cli.demo.setup import DemoSetup  # noqa: PLC0415

    chosen = random.randrange(10_000) if seed is None else seed  # noqa: S311 - a seed, no secret
    with DemoSetup(session.url, keep=keep) as setup:
        with _show(session, setup, tasks, chosen) as show:
            outcome = asyncio.run(run_demo(setup, show, tasks=tasks, seed=chosen))
        kept = setup.folder if keep else None
        return _answer(outcome, chosen, kept, setup.url)


def _show(session: Session, setup: DemoSetup, tasks: int, seed: int) -> Show:
    from holdfast.cli.demo.show import LiveShow, PlainShow, Show  # noqa: PLC0415

    if session.as_json:
        return Show()
    screen = Screen()
    screen.line(f"Holdfast demo: {tasks} tasks on {setup.url} (seed {seed})", "bold")
    screen.line("Two workers run them; half way one is killed with SIGKILL. Nothing may be lost.")
    screen.line()
    return LiveShow(screen) if screen.is_terminal else PlainShow(screen)


def _answer(outcome: DemoResult, seed: int, kept: Path | None, url: str) -> Answer:
    facts = asdict(outcome)
    data = {
        "ok": outcome.held,
        "seed": seed,
        "url": url,
        "kept": None if kept is None else str(kept),
        **facts.pop("proof"),
        **facts,
        "tasks_per_second": outcome.tasks_per_second,
    }
    return Answer(data, lambda screen: _close(screen, outcome, kept), ok=outcome.held)


def _close(screen: Screen, outcome: DemoResult, kept: Path | None) -> None:
    from holdfast.cli.words import duration  # noqa: PLC0415

    proof = outcome.proof
    causes = ", ".join(f"{count} {cause}" for cause, count in proof.second_starts.items())
    screen.line()
    screen.table(
        ("what", "count", "meaning"),
        [
            ("submitted", proof.submitted, "acknowledged, so durable"),
            ("completed", proof.completed, "ended well, each recorded once"),
            ("dead-lettered", proof.dead_lettered, "on purpose: they always fail"),
            ("lost", proof.lost, "acknowledged but not ended"),
            ("recorded twice", proof.recorded_twice, "ended more than once"),
            ("second starts", sum(proof.second_starts.values()), f"causes: {causes or 'none'}"),
            ("lock overlaps", proof.lock_overlaps, "two tasks inside one lock"),
            ("bodies started", proof.bodies_started, "counted by the tasks themselves, in a file"),
            (
                "tasks/s",
                f"{outcome.tasks_per_second:.0f}",
                f"in {duration(outcome.seconds)}, waits included",
            ),
        ],
    )
    screen.line()
    for promise in proof.broken_promises[:20]:
        screen.line(f"BROKEN: {promise}", "bold red")
    if any(outcome.worker_exit_codes):
        screen.line(f"BROKEN: workers left with exit codes {outcome.worker_exit_codes}", "bold red")
    if outcome.held:
        screen.line("Every promise held.", "bold green")
    if kept is not None:
        screen.line(
            f"Kept in {kept}: look with `holdfast task list --url sqlite:///{kept}/demo.db`"
        )
