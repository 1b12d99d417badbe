"""The shop in the pictures of the dashboard: work of every kind, some of it unlucky."""

from __future__ import annotations

import asyncio

from scripts.screenshot_agenda import declare, plan

from holdfast import Breaker, Context, Holdfast, Limit, Rate, chain
from holdfast.errors import Fatal

UNTIL_THE_PICTURE_IS_TAKEN = 3600.0


def welcome(to: str, name: str) -> str:
    return f"<{name.lower()}@mail.example>"


async def charge(order: int, card: str) -> None:
    raise ConnectionError(f"payments.example refused order {order}: 502 Bad Gateway")


async def refund(order: int) -> None:
    raise Fatal(f"order {order} was never paid")


async def monthly(ctx: Context, month: str, customers: int) -> str:
    for n in range(customers // 2):
        ctx.progress(n + 1, customers, f"customer {n + 1}")
        if n % 30 == 0:
            ctx.log(f"read the orders of {n} customers")
        await asyncio.sleep(0.01)
    await asyncio.sleep(UNTIL_THE_PICTURE_IS_TAKEN)
    return month


async def resize(image: int, sizes: list[int]) -> dict[str, int]:
    await asyncio.sleep(UNTIL_THE_PICTURE_IS_TAKEN if image == 7 else 0.02)
    return {f"{image}@{size}": size * 1024 for size in sizes}


async def count(ctx: Context, shelf: str) -> int:
    ctx.log(f"counting {shelf}")
    return await ctx.step("scan", lambda: 17)


async def report(total: int) -> str:
    return f"{total} in stock"


async def sync(partner: int) -> None:
    raise TimeoutError(f"partner {partner} did not answer within 30 s")


async def push(partner: str, order: int) -> None:
    await asyncio.sleep(0.01)


async def settle(account: str, amount: int) -> None:
    await asyncio.sleep(UNTIL_THE_PICTURE_IS_TAKEN)


def reindex(shop: str) -> None:
    """Nobody does it: no worker of the shop has a GPU."""


def make_shop(url: str) -> Holdfast:
    """The shop on this store."""
    app = Holdfast(url=url, include=[])
    app.task(name="mail.welcome", queue="mail", tags="letters")(welcome)
    app.task(name="billing.charge", max_retries=1, retry="exponential(0.05s, 2)")(charge)
    app.task(name="billing.refund")(refund)
    app.task(name="reports.monthly", queue="reports", priority="high")(monthly)
    app.task(name="images.resize", lock="image:{image}")(resize)
    app.task(name="stock.count")(count)
    app.task(name="stock.report")(report)
    app.task(name="search.reindex", queue="search", requires=["gpu"])(reindex)
    app.task(
        name="partners.push", breaker=Breaker(at_least=3), rate=Rate(2, per="10m", key="{partner}")
    )(push)
    app.task(name="billing.settle", concurrency=Limit(2, name="payments"))(settle)
    app.task(name="partners.sync", queue="reports", max_retries=0)(sync)
    app.queue("reports", concurrency=3)
    declare(app)
    return app


def fill(app: Holdfast) -> None:
    """A morning's work."""
    for n in range(26):
        app.submit_by_name("mail.welcome", {"to": f"guest{n}@example.com", "name": f"Guest{n}"})
    for n in range(4):
        app.submit_by_name("billing.charge", {"order": 4400 + n, "card": "tok_visa"})
    app.submit_by_name("billing.refund", {"order": 4391})
    month = {"month": "2026-10", "customers": 180}
    app.submit_by_name("reports.monthly", month, owner="finance")
    for n in (7, 7, 7, 8, 9):
        app.submit_by_name("images.resize", {"image": n, "sizes": [64, 256, 1024]})
    for shop, priority in {"north": "normal", "south": "high", "west": "low"}.items():
        app.submit_by_name("search.reindex", {"shop": shop}, priority=priority)
    for n in range(3):
        app.submit_by_name("partners.sync", {"partner": 70 + n})
    by_name = app.registry
    chain(by_name["stock.count"].s("north"), by_name["stock.report"].s()).submit()
    for n in range(5):
        app.submit_by_name("billing.settle", {"account": f"4711-{n}", "amount": 20 * n})
        app.submit_by_name("partners.push", {"partner": "acme", "order": 4400 + n})
    app.set_limit("breaker:task:partners.push", "open")
    late = {"to": "late@example.com", "name": "Late"}
    app.submit_by_name("mail.welcome", late, delay="45m")
    plan(app)
