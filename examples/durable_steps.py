"""A workflow in one function: steps that run once, a sleep, and an approval from outside."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, Holdfast

app = Holdfast(retry="fixed(0.01s)")
effects: list[str] = []


def charge(order: int) -> str:
    effects.append("charge")
    return f"receipt-{order}"


async def pack(item: str) -> str:
    effects.append(f"pack {item}")
    return f"box of {item}"


@app.task
async def fulfil(ctx: Context, order: int) -> str:
    receipt = await ctx.step("charge", charge, order)
    boxes = await ctx.map(pack, ["tea", "cups"], concurrency=2)
    if ctx.attempt == 1:
        raise ConnectionError("the carrier is away; the next attempt charges and packs nothing")
    await ctx.sleep(0.1)
    approval = await ctx.wait_for("approved", key=order, timeout="7d")
    return f"{receipt}: {', '.join(boxes)}, approved by {approval['by']}"


async def waits(task_id: str) -> bool:
    return (await app.why_async(task_id)).reasons[0][0] == "waiting_for_event"


async def main() -> None:
    async with app:
        handle = await fulfil.submit_async(17)
        working = asyncio.create_task(app.run_worker())
        while not await waits(handle.id):  # noqa: ASYNC110 - it waits in the store
            await asyncio.sleep(0.02)
        told = await app.emit_async("approved", 17, {"by": "ada"})
        again = await app.emit_async("approved", 17, {"by": "bob"})
        print("tasks that waited:", told.woken, "- the second emit counts:", again.first)
        print(await handle)
        print("effects:", effects)
        attempts = (await handle.history_async()).attempts
        print("attempts:", *(attempt.cause.value for attempt in attempts))
        working.cancel()
        await asyncio.wait([working])


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder):
        asyncio.run(main())
