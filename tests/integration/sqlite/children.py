"""What the tests' other processes do. Each says in lines what it saw.

All imports happen at the start: a role may give up the right to read the interpreter's files.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path

from holdfast.core.query import TaskFilter
from holdfast.errors import HoldfastError, StoreError
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.factories import new_task, new_tasks

NOBODY = 65534
WINDOW = 3600.0


def say(*words: object) -> None:
    print(*words, flush=True)


async def attempt(label: str, act: Coroutine[object, object, object]) -> None:
    try:
        await act
        say(f"{label}: ok")
    except HoldfastError as error:
        say(f"{label}: {type(error).__name__}")


async def full_disk(path: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    large = b'"' + b"x" * 400_000 + b'"'
    async with SQLiteStore(path) as store:

        def add(name: str) -> Coroutine[object, object, object]:
            return store.add([new_task(name=name, payload=large)], idempotency_window=WINDOW)

        await attempt("before", add("accepted"))
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        largest = max(p.stat().st_size for p in Path(path).parent.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 100_000, unlimited[1]))
        await attempt("full", add("refused"))
        await attempt("reading", store.list(TaskFilter(), limit=10))
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        await attempt("after", add("accepted"))


async def read_only_file() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "holdfast.db"
        async with SQLiteStore(path):
            pass
        if os.getuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.chown(path, NOBODY, NOBODY)
            os.setegid(NOBODY)
            os.seteuid(NOBODY)
        _permit(folder, path, write=False)
        await attempt("read-only", SQLiteStore(path).open())
        _permit(folder, path, write=True)
        async with SQLiteStore(path) as store:
            await attempt("writable", store.add([new_task()], idempotency_window=WINDOW))
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        shutil.rmtree(folder)


def _permit(folder: Path, path: Path, *, write: bool) -> None:
    path.chmod(0o644 if write else 0o444)
    folder.chmod(0o755 if write else 0o555)


async def fork(path: str) -> None:
    async with SQLiteStore(path) as store:
        await store.add([new_task()], idempotency_window=WINDOW)
        pid = os.fork()
        if pid == 0:
            await _after_fork(store, path)
            os._exit(0)
        await asyncio.to_thread(os.waitpid, pid, 0)
        await attempt("parent", store.add([new_task()], idempotency_window=WINDOW))


async def _after_fork(store: SQLiteStore, path: str) -> None:
    try:
        await store.stats()
    except StoreError as error:
        say("child:", "carried over a fork" if "over a fork" in str(error) else error)
    # The loop itself must not be carried over either, so the child gets a fresh one in a thread.
    own = asyncio.new_event_loop()
    asyncio._set_running_loop(None)
    own.run_until_complete(attempt("child's own", _open_and_close(path)))


async def _open_and_close(path: str) -> None:
    async with SQLiteStore(path) as own:
        await own.add([new_task()], idempotency_window=WINDOW)


async def open_and_add(path: str) -> None:
    """Take part in the race to set up a new file."""
    sys.stdin.readline()
    async with SQLiteStore(path) as store:
        (added,) = await store.add([new_task()], idempotency_window=WINDOW)
        say(added.task_id)


async def private_file(path: str) -> None:
    os.umask(0)
    async with SQLiteStore(path) as store:
        await store.add(new_tasks(1), idempotency_window=WINDOW)
        for end in ("", "-wal", "-shm"):
            say(oct(os.stat(path + end).st_mode & 0o777))  # noqa: PTH116 - one name, three ends


ROLES: dict[str, Callable[..., Coroutine[object, object, None]]] = {
    role.__name__: role
    for role in (
        full_disk,
        read_only_file,
        fork,
        open_and_add,
        private_file,
    )
}

if __name__ == "__main__":
    asyncio.run(ROLES[sys.argv[1]](*sys.argv[2:]))
