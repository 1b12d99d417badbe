"""One at a time per account, side by side across accounts."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, Holdfast

app = Holdfast()
inside: Counter[str] = Counter()
most: Counter[str] = Counter()
fences: list[int] = []


@app.task(lock="account:{account}")
async def book(ctx: Context, account: str, amount: int) -> None:
    inside[account] += 1
    inside["any"] += 1
    most[account] = max(most[account], inside[account])
    most["any"] = max(most["any"], inside["any"])
    await asyncio.sleep(0.01)
    inside[account] -= 1
    inside["any"] -= 1
    if account == "ada" and ctx.fence is not None:
        fences.append(ctx.fence)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        for amount in range(5):
            for account in ("ada", "bob", "eve"):
                book.submit(account, amount)
        asyncio.run(app.run_worker(burst=True))

        print("at a time on one account:", most["ada"])
        print("at a time on different accounts:", most["any"])
        print("every holder got a larger fence:", fences == sorted(set(fences)))
