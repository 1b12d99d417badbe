"""How long the offline planner takes for a request: `python -m bench.planner [rounds]`.

Reads the sentences of the unit tests, each one several times, and prints the time of the middle one
and of the slowest in twenty.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.assistant import parse

CASES = Path(__file__).parent.parent / "tests" / "unit" / "assistant"


def load() -> list[dict[str, Any]]:
    """Every case of the unit tests."""
    files = [*CASES.glob("*.jsonl"), *(CASES / "cases").glob("*.jsonl")]
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def measure(case: dict[str, Any]) -> float:
    """Milliseconds for one request."""
    extra = {key: case[key] for key in ("tasks", "focus") if key in case}
    begin = time.perf_counter()
    parse(case["text"], case["now"], case["tz"], **extra)
    return (time.perf_counter() - begin) * 1000


def main(rounds: int) -> None:
    """Measure and print."""
    cases = load()
    for case in cases:
        measure(case)  # zones and lexicons are read once
    spent = sorted(measure(case) for _ in range(rounds) for case in cases)
    middle, late = spent[len(spent) // 2], spent[len(spent) * 95 // 100]
    print(f"{len(cases)} requests: p50 {middle:.2f} ms, p95 {late:.2f} ms, max {spent[-1]:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
