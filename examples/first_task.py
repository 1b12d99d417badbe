"""The ten lines of the README, in a temporary folder."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Holdfast

app = Holdfast()  # sqlite:///holdfast.db


@app.task(max_retries=5, timeout="30s")
def greet(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        task = greet.submit("Ada")  # on disk when this returns
        print("submitted:", task.status())
        asyncio.run(app.run_worker(burst=True))  # in production: holdfast worker first_task:app
        print("now:", task.status())
        print(task.result())
