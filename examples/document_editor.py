"""A document editor's mutation queue, whole: edits of one document one at a time and in order,
urgent ones first, retried after 5, 25 and 125 seconds, many at once as one undoable batch.

Set `HOLDFAST_REDIS_URL` and workers are woken through Redis; nothing else changes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, Fatal, Holdfast, batch, exponential

app = Holdfast(concurrency=4)
documents: dict[str, list[str]] = defaultdict(list)
editing: set[str] = set()
outages = ["the storage is away"]


@app.task(lock="document:{document}", retry=exponential("5s", multiplier=5), max_retries=3)
async def edit(ctx: Context, document: str, text: str) -> int:
    """Add a line. Nobody else edits this document meanwhile, in the whole fleet."""
    assert document not in editing, "two edits of one document at once"
    editing.add(document)
    try:
        await asyncio.sleep(0.005)
        if text == "" or document == "locked":
            raise Fatal(f"{document} cannot be edited")
        if outages and document == "letter":
            raise ConnectionError(outages.pop())
        documents[document].append(text)
    finally:
        editing.discard(document)
    return len(documents[document])


@app.task
def publish(ctx: Context, title: str) -> str:
    """The parent of many edits: runs when the last of them has ended."""
    edits = [child.value for child in ctx.children_sync()]
    return f"{title}: {len(edits)} edits, {edits[-1]} lines"


def work() -> None:
    asyncio.run(app.run_worker(burst=True))


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        # Whoever types wants to see it now; a nightly reformat can wait.
        for n in range(3):
            edit.options(priority="low").submit("report", f"reformatted {n}")
        edit.options(priority="critical").submit("report", "typed")
        work()
        print("report:", documents["report"])

        # A batch of edits in order; the parent's own body runs after the last of them.
        lines = [edit.s("novel", line) for line in ("once", "upon", "a", "time")]
        book = batch(publish.s("novel"), lines, order="sequence", body="after").submit()
        work()
        print(book.result())
        print("novel:", " ".join(documents["novel"]))

        # One of them cannot be done: those behind it are not begun, and the batch says why.
        broken = [edit.s("essay", "one"), edit.s("essay", ""), edit.s("essay", "three")]
        essay = batch(None, broken, order="sequence", on_failure="cancel_rest").submit()
        work()
        print("essay:", documents["essay"])
        for child in app.tree(essay).children:
            print(f"  {child.state}", child.reason or "")

        # A failed edit is tried again after 5, 25 and 125 seconds; an operator need not wait.
        letter = edit.submit("letter", "dear")
        work()
        task = letter.task()
        print("letter:", task.state, f"after {task.error.type}" if task.error else "")
        letter.retry()
        work()
        print("letter:", letter.result(), "line, in attempt", letter.task().attempt)
