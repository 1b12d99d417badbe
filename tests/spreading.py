"""The order of the tests: those that start and kill processes are spread over the others.

They mostly wait for the processes that they have started, the others mostly compute: in turns they
need less time than one after the other. Files stay together, because tests share what is theirs.
"""

from __future__ import annotations

from itertools import groupby

import pytest


def spread(items: list[pytest.Item], folder: str) -> list[pytest.Item]:
    """The same tests, with the files of this folder at even distances between the other files."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    some = [tests for tests in files if folder in tests[0].path.parts]
    others = [tests for tests in files if folder not in tests[0].path.parts]
    between = sum(map(len, others)) / (len(some) or 1)
    ordered: list[pytest.Item] = []
    placed = passed = 0
    for tests in others:
        while placed < len(some) and placed * between <= passed:
            ordered += some[placed]
            placed += 1
        ordered += tests
        passed += len(tests)
    return ordered + [test for tests in some[placed:] for test in tests]
