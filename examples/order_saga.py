"""An order, from the charge to the parcel, as one task that survives anything: each step is done
once, whatever dies between them; a person approves large orders; what was done is undone if the
rest cannot be.
"""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, EventTimeout, Holdfast

app = Holdfast()
ledger: list[str] = []
crashes = ["the worker lost its network"]


def charge(order: int, amount: int) -> str:
    ledger.append(f"charge {order}: {amount}")
    return f"payment-{order}"


def refund(payment: str) -> None:
    ledger.append(f"refund {payment}")


def reserve(order: int) -> str:
    ledger.append(f"reserve {order}")
    return f"shelf-{order}"


def ship(order: int, shelf: str) -> str:
    if order == 1 and crashes:
        raise ConnectionError(crashes.pop())
    if order == 3:
        raise LookupError("no parcel is large enough")
    ledger.append(f"ship {order} from {shelf}")
    return f"parcel-{order}"


@app.task(max_retries=1, retry="fixed(0)")
async def fulfil(ctx: Context, order: int, amount: int) -> str:
    payment = await ctx.step("charge", charge, order, amount)
    try:
        if amount > 100:
            decision = await ctx.wait_for("approval", key=str(order), timeout="2d")
            if not decision["approved"]:
                await ctx.step("refund", refund, payment)
                return "refused"
        shelf = await ctx.step("reserve", reserve, order)
        return await ctx.step("ship", ship, order, shelf)
    except (LookupError, EventTimeout):
        await ctx.step("undo", refund, payment)
        return "refunded"


def work() -> None:
    asyncio.run(app.run_worker(burst=True))


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        small, large, impossible, doubtful = (
            fulfil.submit(order, amount) for order, amount in ((1, 20), (2, 500), (3, 30), (4, 900))
        )
        work()
        print("1, whose worker failed in between:", small.result())
        print("2 waits for a person:", large.status())

        app.emit("approval", "2", {"approved": True})
        app.emit("approval", "4", {"approved": False})
        work()
        print("2:", large.result())
        print("3:", impossible.result())
        print("4:", doubtful.result())
        print(*sorted(ledger), sep="\n")
