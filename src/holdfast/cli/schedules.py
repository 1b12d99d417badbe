"""`holdfast schedule …`: what runs by the clock, when, and what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import schedule_tables as tables
from holdfast.cli.command import (
    Session,
    WrongUsage,
    Yes,
    confirm,
    with_app,
    with_client,
    with_session,
)
from holdfast.cli.schedule_options import Rule, RuleOptions, ScheduleOptions, Zone, read_time
from holdfast.cli.screen import Answer, Screen
from holdfast.cli.submit import AppSpec, Include, load, read_arguments
from holdfast.cli.words import plural
from holdfast.core.schedule_answers import SCHEDULE, SCHEDULE_RUN
from holdfast.core.schedule_state import ScheduleRun, ScheduleState
from holdfast.errors import InvalidOption, ScheduleNotFound

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.recurrence import Schedule
    from holdfast.schedules.book import OccurrencePage
    from holdfast.schedules.series import Series

app = typer.Typer(help="Run tasks by the clock, and look at what runs when.", no_args_is_help=True)

SHOWN_RUNS = 5

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="At most so many.")]
After = Annotated[
    str, typer.Option("--after", metavar="CURSOR", help="Go on after an earlier page.")
]
Number = Annotated[int, typer.Option("--next", min=1, max=1000, help="Show so many runs.")]


@app.command("add")
@with_app
def add(
    _session: Session,
    app: AppSpec,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    rule: Rule,
    options: ScheduleOptions,
    bounds: RuleOptions,
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[JSON]", help="Its arguments by name, as a JSON object; - reads stdin."
        ),
    ] = "{}",
    tz: Zone = None,
    include: Include = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show when it would run; store nothing.")
    ] = False,
    number: Number = SHOWN_RUNS,
) -> Answer:
    """Submit a task again and again, by a rule.

    The rule is a cron line ("0 9 * * 1-5"), an RRULE ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17"),
    "every 90m", or a time ("2026-12-24T18:00"). Any worker fires it.
    """
    payload, read, (name, words, of_task) = read_arguments(arguments), bounds(rule, tz), options
    loaded = load(app, include)

    async def work() -> Answer:
        async with loaded:
            client = await loaded.verbs()
            book, full_name = client.schedules, loaded.registry.full_name(task)
            call = loaded.registry[full_name].options(**of_task).call_json(payload)
            if not dry_run:
                return _changed(client, await book.create(call, read, name=name, **words))
            now = await client.store.now()
            book.made(book.template(call), read, tz=None, name=name, now=now, words=words)
            if name is not None and await book.get(name) is not None:
                raise InvalidOption("name", f"there is a schedule {name!r} already")
            return _preview(read, number, now, None)

    return asyncio.run(work())


@app.command("list")
@with_client
async def list_schedules(
    session: Session,
    owner: Annotated[str | None, typer.Option("--owner", help="Of this owner.")] = None,
    limit: Limit = 100,
    after: After = "",
) -> Answer:
    """List schedules by name, with their next and their last run."""
    client = session.client
    page = await client.schedules.list(owner=owner, limit=limit, after=after)
    states = [_state(client, one) for one in page.schedules]
    last: list[ScheduleRun | None] = []
    if not session.as_json:
        last = [await _last_run(client, one) for one in page.schedules]

    def show(screen: Screen) -> None:
        tables.show_schedules(screen, states, last)
        if page.next is not None:
            screen.line(f"More: --after {page.next}")

    return Answer({"schedules": [SCHEDULE.write(one) for one in states], "next": page.next}, show)


@app.command("show")
@with_client
async def show_schedule(session: Session, name: Name) -> Answer:
    """Show one: when it runs, how it behaves, and its last runs."""
    series = await _get(session.client, name)
    state = _state(session.client, series)
    page = await session.client.schedules.runs(name, limit=SHOWN_RUNS)
    runs = await _told(session.client, series, page)
    return Answer(SCHEDULE.write(state), lambda screen: tables.show_schedule(screen, state, runs))


@app.command("preview")
@with_session
def preview(
    session: Session,
    what: Annotated[
        str, typer.Argument(metavar="NAME|RULE", help="A schedule, or a rule as `add` takes it.")
    ],
    bounds: RuleOptions,
    tz: Zone = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TIME", help="Later than this; else now.")
    ] = None,
    shown: Annotated[
        str | None, typer.Option("--in", metavar="ZONE", help="Show local times of this zone.")
    ] = None,
    number: Number = SHOWN_RUNS,
) -> Answer:
    """Show the next runs of a schedule, or of a rule that is none yet. Nothing is stored."""
    try:
        rule = bounds(what, tz)
    except InvalidOption as error:
        if any(c.isspace() or c in "=*," for c in what.strip()):
            raise
        rule = asyncio.run(_rule_of(session, what, error))
        if tz is not None:
            raise WrongUsage(
                "usage", f"schedule {what!r} has a zone, {rule.tz}. To see others' time: --in ZONE."
            ) from None
    since = read_time("after", after, shown or rule.tz) or datetime.now(UTC)
    return _preview(rule, number, since, shown)


@app.command("pause")
@with_client
async def pause(
    session: Session,
    name: Name,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Go on by itself then.")
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help="Why, for others to read.")] = None,
) -> Answer:
    """Run no more, until somebody resumes it or for a while."""
    zone = (await _get(session.client, name)).rule.tz
    at = read_time("until", until, zone)
    series = await session.client.schedules.pause(name, until=at, note=note)
    return _changed(session.client, series)


@app.command("resume")
@with_client
async def resume(session: Session, name: Name) -> Answer:
    """Go on from now, without what would have run meanwhile."""
    return _changed(session.client, await session.client.schedules.resume(name))


@app.command("skip")
@with_client
async def skip(session: Session, name: Name) -> Answer:
    """Leave out the next run; said twice, the next two."""
    series = await session.client.schedules.skip(name)
    left_out = tables.local(series.skips[-1], series.rule.tz)
    return _changed(session.client, series, f"The run of {left_out} is left out. ")


@app.command("trigger")
@with_client
async def trigger(session: Session, name: Name) -> Answer:
    """Run it now, beside its rule."""
    task_id = await session.client.schedules.trigger(name)
    return Answer({"task_id": task_id}, lambda screen: screen.line(task_id))


@app.command("backfill")
@with_client
async def backfill(
    session: Session,
    name: Name,
    begin: Annotated[str, typer.Argument(metavar="FROM", help="From this time on …")],
    end: Annotated[str, typer.Argument(metavar="TO", help="… up to this one, or now.")],
    most: Annotated[
        int, typer.Option("--most", min=1, max=1000, help="If they are more, run none.")
    ] = 1000,
) -> Answer:
    """Run what its rule says for a time past, but for what was run.

    Times without an offset are those of its zone.
    """
    zone = (await _get(session.client, name)).rule.tz
    first, last = read_time("begin", begin, zone), read_time("end", end, zone)
    assert first is not None
    assert last is not None
    ids = await session.client.schedules.backfill(name, first, last, most=most)

    def show(screen: Screen) -> None:
        screen.line(f"{plural(len(ids), 'run')} submitted." if ids else "Nothing was left to run.")
        for task_id in ids:
            screen.line(task_id)

    return Answer({"task_ids": list(ids)}, show)


@app.command("delete")
@with_client
async def delete(session: Session, name: Name, yes: Yes = False) -> Answer:
    """Forget a schedule. Its tasks stay."""
    series = await _get(session.client, name)
    declared = "It comes back with the next worker that declares it. " if series.declared else ""
    confirm(session, f"Forget schedule {name!r}? {declared}Its tasks stay.", yes=yes)
    if not await session.client.schedules.delete(name):
        raise ScheduleNotFound(name)
    text = f"{name} is gone; its tasks stay."
    return Answer({"id": name, "deleted": True}, lambda screen: screen.line(text))


@app.command("runs")
@with_client
async def runs(session: Session, name: Name, limit: Limit = 25, after: After = "") -> Answer:
    """Show what became of its runs, newest first."""
    client = session.client
    series = await _get(client, name)
    page = await client.schedules.runs(name, limit=limit, after=after)
    told = await _told(client, series, page)

    def show(screen: Screen) -> None:
        tables.show_runs(screen, told, series.rule.tz)
        if page.next is not None:
            screen.line(f"More: --after '{page.next}'")

    return Answer({"runs": [SCHEDULE_RUN.write(run) for run in told], "next": page.next}, show)


@app.command("sync")
@with_app
def sync(
    _session: Session,
    app: AppSpec,
    include: Include = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also over what people have edited.")
    ] = False,
) -> Answer:
    """Bring the store to what the app's code declares, as its workers do when they start."""
    loaded = load(app, include)

    async def work() -> Answer:
        async with loaded:
            done = await loaded.schedules.reconcile_async(force=force)
        data: dict[str, list[str]] = {
            "added": done.added, "changed": done.changed, "removed": done.removed,
            "kept": done.kept,
        }  # fmt: skip

        def show(screen: Screen) -> None:
            for word, names in data.items():
                what = "kept as people edited it" if word == "kept" else word
                for name in names:
                    screen.line(f"{name}: {what}")
            if not any(data.values()):
                screen.line("Everything is as the code says.")
            elif done.kept:
                screen.line("To undo people's edits: --force")

        return Answer(data, show)

    return asyncio.run(work())


# Steps.


async def _get(client: Client, name: str) -> Series:
    series = await client.schedules.get(name)
    if series is None:
        raise ScheduleNotFound(name)
    return series


async def _rule_of(session: Session, name: str, refusal: InvalidOption) -> Schedule:
    """The rule of the schedule of this name."""
    from holdfast.app import Holdfast  # noqa: PLC0415
    from holdfast.cli.places import refuse_missing  # noqa: PLC0415

    app = Holdfast(url=session.url)
    await refuse_missing(app.settings.url)
    async with app:
        series = await app.schedules.get_async(name)
    if series is None:
        raise WrongUsage(
            "invalid_option", f"there is no schedule {name!r}, and it is no rule either: {refusal}"
        )
    return series.rule


def _state(client: Client, series: Series) -> ScheduleState:
    from holdfast.schedules.showing import schedule_state  # noqa: PLC0415

    return schedule_state(series, client.registry)


async def _last_run(client: Client, series: Series) -> ScheduleRun | None:
    told = await _told(client, series, await client.schedules.runs(series.id, limit=1))
    return told[0] if told else None


async def _told(client: Client, series: Series, page: OccurrencePage) -> Sequence[ScheduleRun]:
    """The runs with their tasks."""
    from holdfast.flow.results import read_tasks  # noqa: PLC0415
    from holdfast.schedules.showing import schedule_run  # noqa: PLC0415

    ids = [run.task_id for run in page.runs if run.task_id is not None]
    tasks = await read_tasks(client.store, ids)
    return [
        schedule_run(series, run, None if run.task_id is None else tasks.get(run.task_id))
        for run in page.runs
    ]


def _changed(client: Client, series: Series, before: str = "") -> Answer:
    state = _state(client, series)
    text = before + tables.sentence(state)
    return Answer(SCHEDULE.write(state), lambda screen: screen.line(text))


def _preview(rule: Schedule, number: int, after: datetime, shown: str | None) -> Answer:
    from holdfast.schedules.previews import preview_of  # noqa: PLC0415 - as REST answers it

    data = preview_of(rule, number, after=after, tz=shown, zone_word="in")
    rows = rule.preview(number, after=after, tz=shown)
    is_all: bool = data["is_complete"]
    return Answer(data, lambda screen: tables.show_preview(screen, rule, rows, is_complete=is_all))
