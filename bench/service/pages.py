"""How fast the dashboard answers on a full store, and what pages cost that stay open."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from statistics import quantiles
from typing import Any

import httpx

from bench.filling import fill
from bench.growth import Size as Depth
from bench.machine import cpu_seconds
from bench.place import Place
from bench.servers import Postgres
from bench.service.process import service
from bench.size import Size
from bench.storms import run_module
from bench.target import Target, verdicts
from holdfast import Holdfast

DEAD, SCHEDULES, OPEN = 2000, 200, 50
WANTED_MS, WANTED_SHARE = 150, 0.1
LIVE = (
    "/", "/tasks", "/queues", "/queues/default", "/workers", "/gates", "/dead-letters",
    "/schedules", "/executions", "/tasks/{waiting}",
)  # fmt: skip
PAGES = (
    *LIVE, "/tasks?status=queued", "/tasks?status=completed&sort=-finished_at",
    "/tasks?status=dead_letter", "/tasks?task_type=nobody", "/tasks?owner=owner-3",
    "/tasks?error_type=ConnectionError", "/tasks?created_after=2026-01-01T00:00:00Z",
    "/tasks?task_type=noop&queue=default",
    "/tasks/{finished}", "/tasks/{dead}", "/tasks/{dead}/edit",
    "/tasks/confirm?action=cancel&all=yes&status=queued",
    "/tasks/confirm?action=retry&all=yes&status=dead_letter", "/find?q=key-17",
    "/dead-letters/{group}", "/dead-letters/confirm?action=replay&queue=broken",
    "/gates/limit:partners", "/schedules/report-7", "/schedules/report-7/edit",
    "/schedules/new/sentence", "/executions/{run}", "/usage", "/settings", "/settings/tokens",
)  # fmt: skip
HEAD = """
{waiting:,} tasks wait and {finished:,} have finished; {dead:,} are dead; {schedules} schedules.
Each page is asked for {times} times, one request at a time, by a token with all rights: what the \
slowest in twenty takes.
Then {open} pages are left open, and what the process of the server uses of a core meanwhile.

"""


def measure(server: Postgres, size: Size) -> str:
    """Measure, and say it as a part of the page."""
    depth, name = Depth(size.deep, size.deep), "bench_pages"
    url = server.fresh(name)
    try:
        ids = _prepared(url, depth)
        with service(url, "bench.page_tasks:app") as (port, pid):
            targets = asyncio.run(_looked_at(port, pid, ids, size))
    finally:
        server.drop(name)
    head = HEAD.format(
        waiting=depth.waiting, finished=depth.finished, dead=DEAD, schedules=SCHEDULES,
        times=size.pick_ups, open=OPEN,
    )  # fmt: skip
    return head + verdicts(targets)


def _prepared(url: str, depth: Depth) -> dict[str, str]:
    async def filled() -> None:
        async with Holdfast(url=url) as app:
            place = Place(app.client.store)
            await place.enter()
            await fill(place, url, depth)

    asyncio.run(filled())
    ids: dict[str, str] = json.loads(
        run_module(url, "bench.page_tasks", str(DEAD), str(SCHEDULES)).splitlines()[-1]
    )
    return ids


async def _looked_at(port: int, pid: int, ids: Mapping[str, str], size: Size) -> list[Target]:
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base, headers={"Origin": base}, timeout=60) as browser:
        answer = await browser.post("/login", data={"token": ids["token"]})
        assert answer.status_code == 303, answer.text
        found = [
            Target(
                what=f"`{page}`", wanted=f"<= {WANTED_MS} ms", limit=WANTED_MS, at_most=True,
                value=await _p95(browser, page.format_map(ids), size.pick_ups), form="{:.0f}",
            )
            for page in PAGES
        ]  # fmt: skip
        share = await _open(browser, pid, [page.format_map(ids) for page in LIVE], size)
    return [*found, Target(
        what=f"{OPEN} open pages", wanted=f"< {WANTED_SHARE} cores", value=share, form="{:.3f}",
        limit=WANTED_SHARE, at_most=True,
    )]  # fmt: skip


async def _p95(browser: httpx.AsyncClient, page: str, times: int) -> float:
    took = []
    for _ in range(times + 3):
        began = time.perf_counter()
        answer = await browser.get(page)
        took.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, f"{page}: {answer.status_code} {answer.text[:500]}"
    return quantiles(took[3:], n=20)[18]


async def _open(browser: httpx.AsyncClient, pid: int, pages: Iterable[str], size: Size) -> float:
    """So many pages, each of these by several who look."""
    shown = [page for page in pages for _ in range(OPEN // len(LIVE))]
    looking = [asyncio.create_task(_look(browser, page)) for page in shown]
    await asyncio.sleep(5)
    used, began = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(size.idle_seconds * 5)
    share = (cpu_seconds(pid) - used) / (time.monotonic() - began)
    assert not any(one.done() for one in looking), "a stream has ended"
    for one in looking:
        one.cancel()
    return share


async def _look(browser: httpx.AsyncClient, page: str) -> None:
    live: dict[str, Any] = {"Accept": "text/event-stream"}
    async with browser.stream("GET", f"/live{page}", headers=live) as answer:
        assert answer.status_code == 200, page
        async for _ in answer.aiter_bytes():
            pass
