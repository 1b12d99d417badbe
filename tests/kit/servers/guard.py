"""Keeps one server process for as long as another process lives. Runs as a script, on its own.

    python guard.py OWNER USER FOLDER AFTERWARDS COMMAND …

It leaves its caller (so nobody has to wait for it), starts the command, prints its process id, and
watches. When OWNER is gone, however it died, the command is interrupted and, if AFTERWARDS is
"remove", its folder goes too; if the guard itself is killed, the kernel interrupts the command. So
no test server outlives the test run that wanted it.

A process and not a thread: the kernel ties a death signal to the *thread* that started the child,
and a thread that watches dies with the process that it should watch.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PATIENCE = 20_000  # milliseconds for a server to end by itself


def main(owner: int, user: str, folder: Path, afterwards: str, command: list[str]) -> None:
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        sys.stdout.write(os.read(reader, 32).decode())
        return
    os.close(reader)
    os.setsid()
    alive = os.pidfd_open(owner)
    redirect(folder / "server.log")
    child = launch(user, command)
    os.write(writer, str(child.pid).encode())
    os.close(writer)
    if is_orphaned(child, alive) and afterwards == "remove":
        shutil.rmtree(folder, ignore_errors=True)


def redirect(log: Path) -> None:
    """Let go of the caller's terminal and pipes."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for mine, stream in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(mine, stream)


def launch(user: str, command: list[str]) -> subprocess.Popen[bytes]:
    account = pwd.getpwnam(user) if user else None
    return subprocess.Popen(
        command,
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=[] if account else None,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
    )


def die_with_parent() -> None:
    # Runs after the change of user, which would undo it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def is_orphaned(child: subprocess.Popen[bytes], owner: int) -> bool:
    """Watch until the child has ended; whether that was because the owner had."""
    ended = os.pidfd_open(child.pid)
    orphaned = ended not in wait_for(owner, ended)
    if orphaned:
        child.send_signal(signal.SIGINT)
        if not wait_for(ended, within=PATIENCE):
            child.kill()
    child.wait()
    return orphaned


def wait_for(*processes: int, within: int | None = None) -> list[int]:
    """Those of the processes that have ended."""
    poll = select.poll()
    for each in processes:
        poll.register(each, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(within)]


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4], sys.argv[5:])
