"""A handler says how far it is, and what it used; anybody can look."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, Holdfast

app = Holdfast()


@app.task
def index(ctx: Context, pages: int) -> int:
    for page in range(1, pages + 1):
        ctx.progress(page, pages, f"page {page}")
        ctx.cost(units=0.5)
    ctx.log("the index is complete")
    return pages


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        task = index.submit(8)
        asyncio.run(app.run_worker(burst=True))

        picture = app.get(task.id)
        print("progress:", picture.progress)
        print("cost:", picture.cost.units)
        print("log:", [event.detail for event in task.history().events if event.kind == "log"])
