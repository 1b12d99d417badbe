"""An app whose tasks misbehave in every way a process must survive. Imported by child processes."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr

from holdfast.app import Holdfast
from holdfast.definitions.context import Context, context
from holdfast.errors import AttemptTimeout, Fatal, Retry, Snooze

app = Holdfast(url="memory://")
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")
hoard: list[bytes] = []


@app.task(executor="process")
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task(executor="process")
async def add_async(a: int, b: int = 1) -> int:
    await asyncio.sleep(0.001)
    return a + b


@app.task(executor="process")
def whoami() -> int:
    return os.getpid()


@app.task(executor="process")
def noisy() -> str:
    print("noise on stdout")
    os.write(1, b"\x00\x00\x00\x05raw noise\n")
    os.write(2, b"raw noise\n")
    return "quiet"


@app.task(executor="process")
def talkative(ctx: Context, text: str) -> str:
    ctx.progress(1, 4, "begun")
    context().log(text)
    ctx.cost(2.5, tokens_in=3)
    return f"{ctx.id} {ctx.attempt}"


@app.task(executor="process")
def stain() -> str:
    before = variable.get()
    variable.set("stained")
    return before


@app.task(executor="process")
def fail(kind: str) -> None:
    match kind:
        case "fatal":
            raise Fatal("pointless")
        case "retry":
            raise Retry("later", after=7)
        case "snooze":
            raise Snooze(after=9)
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case _:
            raise ValueError(kind)


@app.task(executor="process")
def leak(password: SecretStr) -> None:
    raise ValueError(f"not {password.get_secret_value()}")


@app.task(executor="process")
def unstorable() -> object:
    return object()


# What must be stoppable. Each writes its pid first, so that a test can see whether it is gone.


def _arrived(file: str) -> None:
    draft = Path(f"{file}.tmp")
    draft.write_text(str(os.getpid()))
    draft.rename(file)


@app.task(executor="process")
def sleeps(file: str) -> None:
    _arrived(file)
    time.sleep(60)


@app.task(executor="process")
def loops(file: str) -> None:
    _arrived(file)
    while True:
        time.sleep(0.01)


@app.task(executor="process")
def spins(file: str) -> None:
    _arrived(file)
    while True:
        pass


@app.task(executor="process")
def holds_the_gil(file: str) -> None:
    _arrived(file)
    ctypes.PyDLL(None).sleep(60)


@app.task(executor="process")
def swallows(file: str) -> None:
    _arrived(file)
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001 - that is what it is here for
            continue


@app.task(executor="process")
def swallows_and_returns(file: str) -> str:
    _arrived(file)
    try:
        time.sleep(60)
    except BaseException:  # noqa: BLE001 - that is what it is here for
        return "half done"
    return "done"


@app.task(executor="process")
def has_threads(file: str) -> None:
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(60,)).start()
    _arrived(file)
    time.sleep(60)


@app.task(executor="process")
async def waits(file: str) -> None:
    _arrived(file)
    await asyncio.sleep(60)


@app.task(executor="process")
async def blocks_its_loop(file: str) -> None:
    _arrived(file)
    while True:
        pass


@app.task(executor="process")
def tidies(ctx: Context, file: str, note: str) -> str:
    assert not ctx.stop_requested
    Path(file).write_text(str(os.getpid()))
    ctx.stopping.wait()
    time.sleep(0.7)
    Path(note).write_text("tidy")
    return "tidy"


@app.task(executor="process")
async def tidies_async(ctx: Context, file: str, note: str) -> str:
    assert not ctx.stop_requested
    Path(file).write_text(str(os.getpid()))  # noqa: ASYNC240 - a small file
    await ctx.stopping
    await asyncio.sleep(0.7)
    Path(note).write_text("tidy")  # noqa: ASYNC240 - a small file
    return "tidy"


STOPPABLE = (
    sleeps,
    loops,
    spins,
    holds_the_gil,
    swallows,
    swallows_and_returns,
    has_threads,
    waits,
    blocks_its_loop,
)


@app.task(executor="process")
def cleans_up(file: str, note: str) -> None:
    _arrived(file)
    try:
        time.sleep(60)
    except AttemptTimeout:
        Path(note).write_text("out of time")
        raise
    except asyncio.CancelledError:
        Path(note).write_text("cancelled")
        raise


@app.task(executor="process")
def extends(ctx: Context) -> str:
    ctx.extend(30)
    time.sleep(0.6)
    return "had the time"


@app.task(executor="process")
def starts_a_program(file: str) -> None:
    program = subprocess.Popen(["sleep", "60"])
    draft = Path(f"{file}.tmp")
    draft.write_text(str(program.pid))
    draft.rename(file)
    time.sleep(60)


@app.task(executor="process")
def terminates_a_fork() -> int:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


# What forks may do to the line between a process and its worker.


@app.task(executor="process")
def forks_and_fails_to_exec() -> int:
    if os.fork() == 0:
        os.execvp("no-such-program", ["x"])
    return os.getpid()


@app.task(executor="process")
async def forks_in_a_coroutine() -> int:
    if os.fork() == 0:
        await asyncio.sleep(0.001)
        os.execvp("no-such-program", ["x"])
    return os.getpid()


@app.task(executor="process")
def returns_twice(how: str) -> int:
    """The status of a fork that comes back out of the handler, by whatever way."""
    fork = ctypes.PyDLL(None).fork if how == "unseen" else os.fork
    if (pid := fork()) == 0:
        if how == "exits":
            sys.exit(9)
        return 0
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def lines() -> list[int]:
    """The sockets that this process has open."""
    found = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(file.readlink()).startswith("socket:"):
                found.append(int(file.name))
    return found


@app.task(executor="process")
def writes_garbage(data: str, forks: bool = False) -> int:
    """Writes to every socket that it can find; in a fork that Python knows nothing of, too."""
    pid = ctypes.PyDLL(None).fork() if forks else 0
    if pid:
        os.waitpid(pid, 0)
        return os.getpid()
    for line in lines():
        os.write(line, data.encode("latin-1"))
    if forks:
        os._exit(0)
    time.sleep(0.3)
    return os.getpid()


@app.task(executor="process")
def sockets_of_a_fork() -> int:
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, bytes([len(lines())]))
        os._exit(0)
    return os.read(read, 1)[0]


def speak() -> None:
    context().log("said by a fork")


@app.task(executor="process")
def speaks_in_a_fork() -> str:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            pool.apply(speak)
        except Exception as error:  # noqa: BLE001 - what came is what the test looks at
            return str(error)
    return "said"


@app.task(executor="process")
def uses_a_pool(how: str) -> list[int]:
    with multiprocessing.get_context(how).Pool(2) as pool:
        return pool.map(abs, [-1, -2, -3])


@app.task(executor="process")
def runs_a_program() -> str:
    return subprocess.run(
        [sys.executable, "-c", "print('hello')"],
        capture_output=True,
        check=True,
        text=True,
        preexec_fn=os.getpid,  # so that the hooks of a fork run
    ).stdout.strip()


@app.task(executor="process")
def speaks_later(ctx: Context, after: float) -> int:
    def late() -> None:
        time.sleep(after)
        ctx.log("too late")

    threading.Thread(target=late, daemon=True).start()
    return os.getpid()


# How a process may die.


@app.task(executor="process")
def dies(how: str) -> None:
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(7)
        case _:
            os.kill(os.getpid(), signal.SIGKILL)


@app.task(executor="process", memory_limit="64MiB")
def takes_memory(mib: int, seconds: float = 0.0) -> int:
    taken = [bytes([1]) * 1024 * 1024 for _ in range(mib)]
    time.sleep(seconds)
    return len(taken)


@app.task(executor="process", memory_limit="64MiB")
def asks_for_memory(gib: int) -> int:
    return len(bytearray(gib * 1024**3))


@app.task(executor="process")
def keeps_memory(mib: int) -> int:
    hoard.append(bytes([1]) * mib * 1024 * 1024)
    return os.getpid()
