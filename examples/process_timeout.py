"""A body that nothing but a kill can stop, in a process of its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import chdir, suppress
from tempfile import TemporaryDirectory

from holdfast import Holdfast

app = Holdfast()


@app.task(executor="process", timeout=0.5, max_retries=0)
def stubborn() -> None:
    while True:
        with suppress(BaseException):  # it will not hear of stopping
            time.sleep(60)


@app.task(executor="process")
def add(a: int, b: int) -> int:
    return a + b


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        task = stubborn.submit()
        after = add.submit(1, 2)
        started = time.monotonic()
        asyncio.run(app.run_worker(burst=True))
        picture = app.get(task.id)
        print("stubborn:", picture.state, picture.reason)
        print("stopped in time:", time.monotonic() - started < 15)
        print("add:", after.result())
