"""Kill workers under load for as long as you like, and count what was lost.

    make soak MINUTES=60

Round after round on a fresh store: real worker processes, a mix of tasks, a `kill -9` each second,
then the store is judged against what the tasks themselves wrote down. The parts are those of the
acceptance test of the kill storm; here the seed changes with every round. Stops at the first broken
promise, with the seed, and keeps that round's folder.
"""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.acceptance.stage import Stage, ids, until
from tests.acceptance.test_kill_storm import ARGUMENTS, Killer, mixed_calls

from holdfast.core.task import Cause

TASKS = 3_000
STORM = 15.0
CRASHES = 1_000  # a victim of the storm is no poison pill


def main(minutes: float) -> int:
    end = time.monotonic() + 60 * minutes
    rounds = tasks = kills = 0
    while time.monotonic() < end:
        seed = secrets.randbelow(1_000_000)
        folder = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
        broken, killed, again = storm(folder, seed)
        rounds, tasks, kills = rounds + 1, tasks + TASKS, kills + killed
        say(f"round {rounds}, seed {seed}: {TASKS} tasks, {killed} kills, {again} started again")
        if broken:
            say("\n".join(["BROKEN:", *broken[:20], f"seed {seed}, kept in {folder}"]))
            return 1
        shutil.rmtree(folder)
    say(f"{rounds} rounds, {tasks} tasks, {kills} kills: nothing lost, nothing recorded twice")
    return 0


def storm(folder: Path, seed: int) -> tuple[list[str], int, int]:
    """One round: the broken promises, the kills, and how many attempts a death caused."""
    short = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.5s"}
    stage = Stage(folder, **short, crash_limit=str(CRASHES))
    try:
        workers = [stage.worker(*ARGUMENTS) for _ in range(2)]
        killer = Killer(stage, workers, seed)
        killing = threading.Thread(target=killer.storm, args=(STORM, 1.0))
        killing.start()
        calls = list(mixed_calls(stage, TASKS))
        acknowledged: list[str] = []
        for start in range(0, TASKS, 100):
            acknowledged += ids(stage.app.submit_many(calls[start : start + 100]))
            time.sleep(STORM / (TASKS / 100))  # spread over the storm
        killing.join()
        until(lambda: not stage.unfinished(), within=120)
        broken = [str(each) for each in stage.broken(acknowledged, crash_limit=CRASHES)]
        attempts = [a for picture in stage.pictures() for a in picture.history.attempts]
        return broken, len(killer.killed), sum(a.cause is Cause.WORKER_LOST for a in attempts)
    finally:
        stage.close()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0))
