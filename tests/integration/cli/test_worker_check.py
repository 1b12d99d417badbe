"""`holdfast workers --check NAME`: what a probe learns of workers that live, freeze and die."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from tests.integration.cli.conftest import Shell
from tests.kit.servers.postgres import PostgresServer

from holdfast.cli.processes import tree
from holdfast.testing.eventually import eventually

QUICK = {"HOLDFAST_LEASE": "2s", "HOLDFAST_HEARTBEAT": "0.4s", "HOLDFAST_SWEEP": "0.5s"}


def check(shell: Shell, name: str) -> int:
    return shell.run("workers", "--check", name, **QUICK).code


@contextmanager
def worker(shell: Shell, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    process = shell.start("worker", "shop:app", *options, stdout=subprocess.DEVNULL, **QUICK)
    try:
        yield process
    finally:
        for pid in family(process):
            os.kill(pid, signal.SIGCONT)
        process.terminate()
        process.wait(30)


def family(process: subprocess.Popen[bytes]) -> list[int]:
    """A worker's supervisor and its processes; nothing if it has ended."""
    return tree(process.pid) if process.poll() is None else []


async def test_a_worker_that_beats_passes_and_one_that_stands_still_does_not_until_it_goes_on(
    fresh: Shell,
) -> None:
    fresh.ok("migrate")
    with worker(fresh, "--name", "mail") as mail, worker(fresh, "--name", "mail-eu"):
        await eventually(lambda: check(fresh, "mail") == 0, within=30.0)
        await eventually(lambda: check(fresh, "mail-eu") == 0, within=30.0)

        for pid in family(mail):
            os.kill(pid, signal.SIGSTOP)
        await eventually(lambda: check(fresh, "mail") == 1, within=30.0)
        assert check(fresh, "mail-eu") == 0

        for pid in family(mail):
            os.kill(pid, signal.SIGCONT)
        await eventually(lambda: check(fresh, "mail") == 0, within=30.0)


async def test_one_process_of_two_that_stands_still_is_found_though_its_supervisor_lives(
    fresh: Shell,
) -> None:
    fresh.ok("migrate")
    with worker(fresh, "--processes", "2") as both:
        host = socket.gethostname()
        await eventually(lambda: len(fresh.ok("workers")["workers"]) == 2, within=30.0)
        assert check(fresh, host) == 0
        pid = fresh.ok("workers")["workers"][0]["pid"]

        os.kill(pid, signal.SIGSTOP)

        async def is_noticed() -> bool:
            ran = fresh.run("workers", "--check", host, "--json", **QUICK)
            return ran.code == 1 or pid not in {each["pid"] for each in ran.json["workers"]}

        await eventually(is_noticed, within=30.0)
        os.kill(pid, signal.SIGCONT)
        assert both.poll() is None


async def test_a_worker_that_was_killed_fails_and_so_does_one_that_left(fresh: Shell) -> None:
    fresh.ok("migrate")
    with worker(fresh, "--name", "killed") as killed, worker(fresh, "--name", "left") as left:
        await eventually(lambda: check(fresh, "killed") == check(fresh, "left") == 0, within=30.0)

        for pid in family(killed):
            with suppress(ProcessLookupError):  # they die with their supervisor
                os.kill(pid, signal.SIGKILL)
        killed.wait(30)
        left.terminate()
        left.wait(30)

        assert check(fresh, "left") == 1
        await eventually(lambda: check(fresh, "killed") == 1, within=30.0)
        told = fresh.run("workers", "--check", "left", **QUICK)
        assert told.out == "No worker 'left' is alive.\n"


async def test_a_store_that_cannot_be_asked_is_no_fault_of_the_worker(
    fresh: Shell, own_postgres: PostgresServer
) -> None:
    fresh = replace(fresh, url=own_postgres.create_database("shop"))
    fresh.ok("migrate")
    own_postgres.stop("immediate")

    ran = fresh.run("workers", "--check", "mail", "--json")

    assert ran.code == 3
    assert ran.error["code"] == "store_unavailable"
