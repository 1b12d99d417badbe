"""Urgent work goes first, and old work becomes urgent."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory

from holdfast import Holdfast

app = Holdfast(concurrency=1)


@app.task
async def work(what: str) -> None:
    print(what)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        now = datetime.now(UTC)
        for priority in ("low", "normal", "high", "critical"):
            work.options(priority=priority).submit(f"{priority}, submitted just now")
        # As if it had been waiting: low work is as urgent as normal after 10 minutes, and as high
        # after half an hour.
        waited = timedelta(minutes=31)
        work.options(priority="low", run_at=now - waited).submit("low, waiting for 31 minutes")
        waited = timedelta(minutes=11)
        work.options(priority="low", run_at=now - waited).submit("low, waiting for 11 minutes")
        asyncio.run(app.run_worker(burst=True))
