"""What becomes of errors: a retry that helps, one that does not, and giving up at once."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, Fatal, Holdfast, fixed

app = Holdfast()
the_server_is_up = False


@app.task(retry=fixed(0.01))
def flaky(ctx: Context) -> str:
    if ctx.attempt < 3:
        raise ConnectionError("connection reset")
    return f"worked in attempt {ctx.attempt}"


@app.task(max_retries=2, retry=fixed(0.01))
def doomed() -> str:
    if not the_server_is_up:
        raise ConnectionError("no route to host")
    return "worked after the replay"


@app.task
def pointless(account: int) -> None:
    raise Fatal(f"account {account} does not exist")


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder), app:
        tasks = {
            "flaky": flaky.submit(),
            "doomed": doomed.submit(),
            "pointless": pointless.submit(7),
        }
        asyncio.run(app.run_worker(burst=True))
        for name, task in tasks.items():
            print(f"{name}: {task.status()}")
            for attempt in task.history().attempts:
                error = f": {attempt.error.message}" if attempt.error else ""
                print(f"  attempt {attempt.number} ({attempt.cause}) {attempt.ended}{error}")

        the_server_is_up = True
        tasks["doomed"].retry()
        asyncio.run(app.run_worker(burst=True))
        print("doomed, replayed:", tasks["doomed"].result())
