"""`holdfast doctor` and `holdfast migrate`: is all well, and is the store up to date?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import deployed as about
from holdfast.cli import findings as look
from holdfast.cli.command import CommandFailed, Session, with_session
from holdfast.cli.deployed import Wanted
from holdfast.cli.findings import Finding, Level
from holdfast.cli.places import open_to_others, refuse_missing
from holdfast.cli.probing import measure
from holdfast.cli.screen import STYLES, Answer, Screen
from holdfast.cli.words import plural
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State
from holdfast.errors import SchemaMismatch, StoreError
from holdfast.setting_sources import Setting, settings_in_force
from holdfast.worker.version import version as worker_version

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.client import Client

WAITING = TaskFilter(states=frozenset({State.QUEUED}))
LOOKED_AT = 500


@with_session
def doctor(session: Session) -> Answer:
    """Look for anything wrong, and say how to fix it.

    Settings in force, the store and its schema, workers, queues. Exit code 1 if something is wrong.
    """
    from holdfast.app import Holdfast  # noqa: PLC0415

    app = Holdfast(url=session.url)
    in_force = settings_in_force(app.settings, {"url": session.url})
    findings = asyncio.run(_examine(app))
    problems = sum(finding.level is Level.PROBLEM for finding in findings)
    data = {
        "ok": not problems,
        "settings": {s.name: {"value": s.value, "source": s.source} for s in in_force},
        "findings": [
            {"level": f.level.value, "code": f.code, "message": f.text, "fix": f.fix}
            for f in findings
        ],
    }
    return Answer(data, lambda screen: _show(screen, in_force, findings, problems), ok=not problems)


async def _examine(app: Holdfast) -> list[Finding]:
    try:
        await refuse_missing(app.settings.url)
        async with app:
            client, lease = await app.verbs(), app.settings.lease
            workers, stats = await client.workers(), await client.stats()
            fleet, demand = await client.store.workers(), await client.store.demand()
            measured = await measure(client.store)
            return [
                look.about_schema(await client.store.schema_version(), client.store.url),
                *about.settings(app.settings),
                *about.clock(measured),
                *about.latency(measured),
                look.about_wake_ups(
                    await client.dispatcher.mode(),
                    app.settings.poll,
                    wants_redis=app.settings.redis_url is not None,
                ),
                *look.about_rights(open_to_others(app.settings.url)),
                *look.about_check(await client.doctor()),
                *look.about_workers(workers, lease),
                *about.versions(workers, worker_version()),
                *look.about_queues(stats, workers),
                *look.about_demand(demand, fleet),
                *about.oldest_waiting(await _oldest_waiting(client), demand, fleet),
                *look.about_dead_letters(stats),
            ]
    except (StoreError, CommandFailed) as error:
        return [Finding(Level.PROBLEM, "store", str(error))]


async def _oldest_waiting(client: Client) -> Mapping[Wanted, int]:
    """The oldest tasks in line, by what they want of a worker: most are not looked at, because a
    backlog may be deep.
    """
    page = await client.store.list(WAITING, limit=LOOKED_AT, after=None, order=Order.OLDEST)
    return Counter(Wanted(task.name, task.queue, task.requires) for task in page.tasks)


def _show(
    screen: Screen, in_force: Sequence[Setting], findings: Sequence[Finding], problems: int
) -> None:
    screen.table(("setting", "value", "from"), [(s.name, s.value, s.source) for s in in_force])
    screen.line()
    for finding in findings:
        screen.line(f"{finding.level.value:8} {finding.text}", STYLES[finding.level])
        if finding.fix is not None:
            screen.line(f"{'':8} fix: {finding.fix}")
    screen.line()
    screen.line(_summary(problems, sum(f.level is Level.WARNING for f in findings)))


def _summary(problems: int, warnings: int) -> str:
    warned = f"{plural(warnings, 'warning')}."
    if problems:
        return f"{plural(problems, 'problem')} found" + (f", {warned}" if warnings else ".")
    return f"No problem, {warned}" if warnings else "All is well."


@with_session
def migrate(
    session: Session,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit code 1 if there is work to do.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--print", help="Change nothing; print the SQL of the whole schema.")
    ] = False,
) -> Answer:
    """Bring the store's schema to this release's version."""
    from holdfast.app import Holdfast  # noqa: PLC0415
    from holdfast.wiring import schema_script  # noqa: PLC0415

    app = Holdfast(url=session.url)
    if show:
        expected, script = schema_script(app.settings.url)
        return Answer(
            {"version": expected, "sql": script}, lambda screen: screen.line(script.rstrip())
        )
    if check:
        return asyncio.run(_check(app.settings.url))
    applied = list(app.migrate())
    text = f"Applied: {', '.join(map(str, applied))}." if applied else "Nothing to do."
    return Answer({"applied": applied}, lambda screen: screen.line(text))


async def _check(url: str) -> Answer:
    """Compares versions without opening the store, which would make an absent schema."""
    from holdfast.wiring import open_store, schema_script  # noqa: PLC0415

    store = open_store(url)
    found = await store.schema_version()
    expected, _ = schema_script(url)
    if found > expected:
        raise SchemaMismatch(found=found, expected=expected, where=store.url)
    data = {"pending": found < expected, "found": found, "expected": expected}
    if found < expected:
        text = f"Schema version {found}, expected {expected}: run `holdfast migrate`."
        return Answer(data, lambda screen: screen.line(text), ok=False)
    return Answer(data, lambda screen: screen.line(f"Schema version {found}: up to date."))
