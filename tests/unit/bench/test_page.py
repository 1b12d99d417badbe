"""The page of benchmarks is renewed part by part."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.machine import Watch
from bench.page import HEAD, part, renewed, split
from bench.stamp import code, stamp

ORDER = ("Peers", "Bloat", "SQLite")
STAMP = "Measured at commit 1234567, on 2026-01-01: 2 cores.\n"


@pytest.fixture
def page() -> str:
    texts = {title: part(title, STAMP, f"figures of {title}\n\n| a |\n|---|\n") for title in ORDER}
    return renewed("", texts, ORDER)


def test_a_part_has_its_heading_its_stamp_and_its_figures() -> None:
    assert part("Bloat", STAMP, "\nfigures\n") == f"## Bloat\n\n{STAMP}\nfigures\n"


def test_only_the_part_that_was_measured_changes(page: str) -> None:
    new = part("Bloat", "Measured at commit abcdef0.\n", "new figures")

    after = renewed(page, {"Bloat": new}, ORDER)

    assert after == page.replace(split(page)["Bloat"], new)
    assert "new figures" in after


def test_a_run_that_measured_nothing_leaves_the_page_as_it_is(page: str) -> None:
    assert renewed(page, {}, ORDER) == page


def test_a_new_part_takes_its_place_in_the_order(page: str) -> None:
    new = part("Dispatch", STAMP, "figures")

    after = renewed(page, {"Dispatch": new}, ("Peers", "Dispatch", "Bloat", "SQLite"))

    assert list(split(after)) == ["Peers", "Dispatch", "Bloat", "SQLite"]
    assert after.replace(f"{new}\n", "") == page


def test_a_part_that_nobody_measures_any_more_goes(page: str) -> None:
    assert list(split(renewed(page, {}, ("Peers", "SQLite")))) == ["Peers", "SQLite"]


def test_an_empty_page_gets_its_head(page: str) -> None:
    assert page.startswith(HEAD)


def test_a_stamp_names_commit_day_machine_and_how_busy_others_were() -> None:
    line = stamp("commit 1234567", Watch(foreign=[0.0, 0.1, 4.0]), ["PostgreSQL 18.4"])

    assert line.startswith("Measured at commit 1234567, on 20")
    assert "PostgreSQL 18.4; others kept 0.1 cores busy (median of 3 readings; 0.0 to 4.0)" in line


def test_code_outside_of_a_clone_has_no_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.stamp.ROOT", tmp_path)

    assert code() == "a commit unknown"
