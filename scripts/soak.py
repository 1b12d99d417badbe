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
import time
from pathlib import Path

from tests.acceptance.stage import Stage
from tests.acceptance.storm import SETTINGS, Toll, kill_storm

from holdfast.core.task import Cause

TASKS = 3_000
STORM = 15.0


def main(minutes: float) -> int:
    end = time.monotonic() + 60 * minutes
    rounds = tasks = kills = 0
    while time.monotonic() < end:
        seed = secrets.randbelow(1_000_000)
        folder = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
        toll = storm(folder, seed)
        again = toll.causes.count(Cause.WORKER_LOST)
        rounds, tasks, kills = rounds + 1, tasks + TASKS, kills + toll.kills
        say(f"round {rounds}, seed {seed}: {TASKS} tasks, {toll.kills} kills, {again} again")
        if toll.broken:
            say("\n".join(["BROKEN:", *toll.broken[:20], f"seed {seed}, kept in {folder}"]))
            return 1
        shutil.rmtree(folder)
    say(f"{rounds} rounds, {tasks} tasks, {kills} kills: nothing lost, nothing recorded twice")
    return 0


def storm(folder: Path, seed: int) -> Toll:
    """One round on a fresh store."""
    stage = Stage(folder, **SETTINGS)
    try:
        return kill_storm(stage, tasks=TASKS, seconds=STORM, seed=seed)
    finally:
        stage.close()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0))
