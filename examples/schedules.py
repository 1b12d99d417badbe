"""An application that runs by the clock: reports in every user's own time, and upkeep at night.

It is lived through here on a clock of the tests, three days in a second. In production `holdfast
worker schedules:app`, in as many processes as you like, is all there is: none of them is the beat.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast import Context, Holdfast, every, rrule
from holdfast.testing import FakeClock, InMemory, in_memory

app = Holdfast()
diary: list[str] = []


def note(ctx: Context, what: str) -> None:
    assert ctx.scheduled_for is not None
    diary.append(f"{ctx.scheduled_for:%a %H:%M} UTC  {what}")


@app.task
def report(ctx: Context, user: str) -> None:
    note(ctx, f"report for {user}")


# Declared in code: workers bring them into the store when they start, and keep them so.


@app.schedule("30 2 * * *", tz="Europe/Berlin", name="clean-up", overlap="skip")
@app.task
def clean_up(ctx: Context) -> None:
    note(ctx, "clean-up at half past two in Berlin")


@app.schedule(every("4h"), name="poll", overlap="skip", catch_up="skip")
@app.task
def poll(ctx: Context) -> None:
    note(ctx, "poll")


@app.schedule(
    rrule("FREQ=MONTHLY;BYDAY=-1SA;BYHOUR=6"),
    name="invoices",
    overlap="queue_all",
    catch_up="all",
    catch_up_window="14d",
    pause_after_failures=3,
)
@app.task
def invoices(ctx: Context) -> None:
    note(ctx, "invoices, on the last Saturday of the month")


# Created at run time: one for each user, in the user's own time.


def sign_up(user: str, zone: str) -> None:
    made = app.schedules.create(
        report.call(user),
        "0 9 * * *",
        tz=zone,
        name=f"report-{user}",
        owner=user,
        title="Daily report",
        jitter="5m",
    )
    print(f"{made.id}: {made.rule.words}")


def live(memory: InMemory, hours: int) -> None:
    """Let so many hours pass with a worker at work, and read what it did."""
    for _ in range(12 * hours):
        memory.clock.advance(timedelta(minutes=5))
        memory.drain()
    print(*diary, sep="\n")
    diary.clear()


def main(memory: InMemory) -> None:
    sign_up("aiko", "Asia/Tokyo")
    sign_up("ben", "Europe/Berlin")

    print("\n-- Friday")
    live(memory, 24)

    print("\n-- The fleet is down until Sunday afternoon")
    memory.clock.advance(timedelta(hours=38))
    live(memory, 1)

    print("\n-- What became of the runs of clean-up")
    for run in reversed(app.schedules.runs("clean-up").runs):
        print(f"{run.at:%a %H:%M} UTC  {run.status}  {run.reason or run.origin}")

    print("\n-- Ben is on holiday, and Aiko skips a day")
    print(app.schedules.pause("report-ben", note="on holiday").status)
    skipped = app.schedules.skip("report-aiko").skips[0]
    print(f"left out: {skipped:%a %H:%M} UTC")
    live(memory, 14)


if __name__ == "__main__":
    thursday = datetime(2026, 3, 26, 23, 50, tzinfo=UTC)
    with in_memory(app, clock=FakeClock(thursday)) as memory:
        main(memory)
