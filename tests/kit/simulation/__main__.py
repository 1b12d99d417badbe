"""`python -m tests.kit.simulation [histories] [first seed]`.

With SIM_SEED=… in the environment: that one history.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter

from tests.kit.simulation.history import run_history


def main(arguments: list[str]) -> int:
    """Run histories one after the other; stop at the first that breaks a promise."""
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    seed = os.environ.get("SIM_SEED")
    first = int(seed) if seed else int(arguments[1]) if len(arguments) > 1 else 0
    number = 1 if seed else int(arguments[0]) if arguments else 1000
    seen: Counter[str] = Counter()
    began = time.perf_counter()
    for number_of_seed in range(first, first + number):
        verdict = run_history(number_of_seed)
        seen.update(verdict.seen)
        if verdict.broken:
            sys.stdout.write(f"{verdict}\n")
            return 1
    for what, times in sorted(seen.items()):
        sys.stdout.write(f"{times:9,}  {what}\n")
    sys.stdout.write(f"{number:,} histories held in {time.perf_counter() - began:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
