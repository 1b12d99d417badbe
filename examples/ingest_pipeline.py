"""An ingest pipeline, whole: every page of every file is read side by side, each tenant has its
fair part of the fleet and no more than two readers, and one report comes at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Composite, Holdfast, Limit, Rate, chain, chord

app = Holdfast(concurrency=8)
reading: Counter[str] = Counter()
most: Counter[str] = Counter()

FILES = {"acme": {"a.txt": 6, "b.txt": 4}, "tiny": {"c.txt": 2}}


@app.task(
    concurrency=Limit(2, key="{tenant}"),
    rate=Rate(1000, per="1m", key="{tenant}"),
    fair_by="{tenant}",
)
async def read_page(tenant: str, name: str, page: int) -> int:
    """Words on a page."""
    reading[tenant] += 1
    most[tenant] = max(most[tenant], reading[tenant])
    await asyncio.sleep(0.005)
    reading[tenant] -= 1
    return 100 + page


@app.task
def count_words(pages: list[int]) -> int:
    return sum(pages)


@app.task
def report(words: int, tenant: str) -> str:
    return f"{tenant}: {words} words"


def pipeline(tenant: str) -> Composite[str]:
    pages = (
        read_page.s(tenant, name, page)
        for name, count in FILES[tenant].items()
        for page in range(count)
    )
    return chain(chord(pages, count_words.s()), report.s(tenant=tenant))


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        handles = [pipeline(tenant).submit() for tenant in FILES]
        asyncio.run(app.run_worker(burst=True))

        for handle in handles:
            print(handle.result())
        print("readers of one tenant at a time:", max(most.values()))
