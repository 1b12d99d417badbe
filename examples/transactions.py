"""Money moves exactly once, although the handler fails at the worst moment."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import chdir, closing
from tempfile import TemporaryDirectory

from holdfast import Context, Holdfast

app = Holdfast(url="sqlite:///bank.db", retry_base="10ms")


@app.task
async def transfer(ctx: Context, source: str, target: str, amount: int) -> None:
    async with ctx.transaction() as conn:
        change = "UPDATE account SET balance = balance + ? WHERE name = ?"
        await conn.execute(change, (-amount, source))
        if ctx.attempt == 1:
            raise ConnectionError("half of it is done")
        await conn.execute(change, (amount, target))
        await notify.options(connection=conn).submit_async(target, amount)
        ctx.complete()


@app.task
async def notify(who: str, amount: int) -> None:
    print(f"{who} has got {amount}")


def open_bank() -> sqlite3.Connection:
    bank = sqlite3.connect("bank.db")
    bank.execute("CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER)")
    bank.executemany("INSERT INTO account VALUES (?, ?)", [("ada", 100), ("bob", 0)])
    bank.commit()
    return bank


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app, closing(open_bank()) as bank:
        order = transfer.options(connection=bank).submit("ada", "bob", 30)
        print("before the caller commits:", app.count(), "tasks")
        bank.commit()
        asyncio.run(app.run_worker(burst=True))

        print("accounts:", dict(bank.execute("SELECT name, balance FROM account").fetchall()))
        print(
            "attempts:",
            [attempt.ended.value for attempt in order.history().attempts if attempt.ended],
        )
