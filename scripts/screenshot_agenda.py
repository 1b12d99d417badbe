"""The schedules of the shop in the pictures: reports, clean-ups, and what people asked for."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

from holdfast import AgentResult, AgentRun, Context, Holdfast
from holdfast.core.record import Changes
from holdfast.schedules.occurrence import Occurrence, Origin, RunStatus, put_occurrence

PRICE = 0.0043
PAGES = {
    "schedules": "/schedules",
    "schedule": "/schedules/inbox",
    "schedule-new": "/schedules/new?task_type=billing.close_day&rule=30+9+*+*+1-5&tz=Europe/Berlin",
    "schedule-edit": "/schedules/close-day/edit",
    "schedule-backfill": "/schedules/inbox/backfill?begin=2026-11-02T00:00&end=2026-11-09T00:00",
    "schedule-delete": "/schedules/prices/delete",
    "sentence": "/schedules/new/sentence",
    "executions": "/executions",
    "usage": "/usage?measure=tokens&from=2026-11-08",
    "budget": "/usage/budget?key=owner:ann",
    "settings": "/settings",
    "tokens": "/settings/tokens",
}


def summarise(run: AgentRun) -> AgentResult:
    """An agent that is paid by the token."""
    run.progress("Reading your inbox")
    run.usage(1, tokens_in=2900, tokens_out=310, cost=PRICE)
    run.progress("Thinking")
    run.progress("Writing the summary")
    return AgentResult(
        content="Three mails, none of them urgent.\n\n"
        "1. Ann asks for the minutes of Tuesday.\n"
        "2. The supplier moved the delivery to Friday.\n"
        "3. <Newsletter> nobody reads."
    )


async def close_day(ctx: Context, shop: str) -> str:
    return f"{shop} is closed"


async def sync_prices(region: str) -> int:
    raise ConnectionError("prices.example: connection refused")


def declare(app: Holdfast) -> None:
    """The tasks that schedules of the shop submit."""
    app.agent(name="assistant.inbox", default=True)(summarise)
    app.task(name="billing.close_day")(close_day)
    app.task(name="prices.sync", max_retries=0)(sync_prices)


def plan(app: Holdfast) -> None:
    """A week in which most went well."""
    book, now = app.schedules, app.wait_for(app.client.now())
    book.create(
        "assistant.inbox", "0 9 * * 1-5", tz="Europe/Berlin", name="inbox", owner="ann",
        title="Summarise my inbox", purpose="Summarise my inbox.", channels=["inbox"],
        arguments={"purpose": "Summarise my inbox."}, category="REPORT", estimated_units=1,
    )  # fmt: skip
    book.create(
        "billing.close_day", "30 23 * * *", tz="Europe/Berlin", name="close-day", owner="finance",
        title="Close the books of the day", arguments={"shop": "north"}, catch_up="all",
    )  # fmt: skip
    book.create(
        "prices.sync", "every 20m", name="prices", owner="ops", title="Fetch prices",
        arguments={"region": "eu"}, overlap="cancel_running", jitter="30s",
    )  # fmt: skip
    book.create(
        "billing.close_day", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0", tz="Europe/Berlin",
        name="month-end", owner="finance", title="Month-end report", arguments={"shop": "all"},
    )  # fmt: skip
    book.create(
        "billing.close_day", "0 6 * * 1", tz="America/New_York", name="stock-take", owner="ops",
        title="Count the stock", arguments={"shop": "south"},
    )  # fmt: skip
    book.pause("stock-take", until=now + timedelta(days=9), note="inventory holidays")
    book.skip("close-day")
    for name in ("inbox", "inbox", "close-day", "close-day", "prices", "prices", "month-end"):
        book.trigger(name)
    app.budgets.set("owner:ann", day={"runs": 20, "tokens": 60_000}, month={"cost": 5.0})
    app.budgets.set("schedule:prices", day={"runs": 100}, month={"units": 2000})
    for days in range(1, 4):
        begin = now - timedelta(days=days)
        book.backfill("inbox", begin - timedelta(days=1), begin)
    app.wait_for(_let_go(app, now))


async def _let_go(app: Holdfast, now: datetime) -> None:
    """Runs that were left out."""
    gone = [
        Occurrence("prices", 1, now - timedelta(minutes=41), RunStatus.SKIPPED, Origin.SCHEDULE,
                   reason="the run before had not ended"),
        Occurrence("close-day", 1, now - timedelta(days=2), RunStatus.MISSED, Origin.SCHEDULE,
                   reason="nobody could fire it in time"),
    ]  # fmt: skip
    puts = [put_occurrence(each, 86_400.0) for each in gone]
    await app.client.store.commit(Changes(uuid4().hex, records=puts))
