"""Which parts of the page a run writes, and what the part on bloat says."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.__main__ import play
from bench.bloat import PAGE, Bloat, text
from bench.environments import Unavailable
from bench.page import renewed, split
from bench.parts import GROUPS, NAMES, PARTS, Found, Part
from bench.run import Run
from bench.size import FULL, QUICK, Size

OLD = "measured long ago"


def _part(title: str, *names: str, lengthy: bool = False) -> Part:
    return Part(
        title=title,
        names=frozenset(names),
        measure=lambda _: Found("measured now"),
        lengthy=lengthy,
    )


FEW = (_part("Peers", "us", "them"), _part("Bloat", "bloat", lengthy=True))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    texts = {part.title: f"## {part.title}\n\n{OLD}\n" for part in FEW}
    path.write_text(renewed("", texts, list(texts)))
    return path


def _written(page: Path, *chosen: str, size: Size = FULL, long: bool = False) -> set[str]:
    """Titles of the parts that a run over those names has written."""
    with ExitStack() as stack:
        play(Run(chosen=frozenset(chosen), size=size, long=long, stack=stack), page, FEW)
    return {title for title, text in split(page.read_text()).items() if OLD not in text}


def test_a_part_that_was_measured_whole_is_written_with_its_stamp(page: Path) -> None:
    assert _written(page, "us", "them") == {"Peers"}
    assert "\nMeasured at " in page.read_text()


def test_a_part_of_which_only_some_was_measured_stays(page: Path) -> None:
    assert _written(page, "us") == set()


def test_a_quick_run_writes_nothing(page: Path) -> None:
    assert _written(page, "us", "them", "bloat", size=QUICK, long=True) == set()


def test_a_brief_look_does_not_replace_what_took_long(page: Path) -> None:
    assert _written(page, "bloat") == set()
    assert _written(page, "bloat", long=True) == {"Bloat"}


def test_a_part_that_cannot_be_measured_here_does_not_end_the_run(page: Path) -> None:
    def fail(_: Run) -> Found:
        raise Unavailable("there is no PostgreSQL here")

    broken = Part(title="Peers", names=frozenset({"us"}), measure=fail)
    with ExitStack() as stack:
        run = Run(chosen=frozenset({"us", "bloat"}), size=FULL, long=True, stack=stack)
        values = play(run, page, [broken, FEW[1]])

    assert list(values) == ["Bloat"]
    assert OLD in split(page.read_text())["Peers"]


def test_every_name_belongs_to_one_part_and_groups_name_what_exists() -> None:
    assert sum(len(part.names) for part in PARTS) == len(NAMES)
    assert frozenset().union(*GROUPS.values()) <= set(NAMES)


def test_bloat_is_told_on_the_way_and_at_rest_of_tables_and_indexes_apart() -> None:
    def size(tasks: int, table: int, index: int, *, at_rest: bool) -> Bloat:
        return Bloat(
            tasks=tasks,
            at_rest=at_rest,
            tables={"ready": table * PAGE, "lane": PAGE},
            indexes={"ready": index * PAGE, "lane": PAGE},
        )

    said = text(
        [
            size(500_000, 400, 499, at_rest=False),
            size(500_000, 0, 499, at_rest=True),
            size(5_000_000, 440, 539, at_rest=False),
            size(5_000_000, 2, 539, at_rest=True),
        ]
    )

    assert (
        "| tables at rest, pages after 5,000,000 tasks less after 500,000 | <= 0 | 2 "
        "| **not met** |" in said
    )
    assert "| tables on the way, after 5,000,000 tasks / after 500,000 | | 1.100 | |" in said
    assert (
        "| indexes after 5,000,000 tasks / after 500,000 | <= 1.05 | 1.080 | **not met** |" in said
    )
    assert "| everything after 5,000,000 tasks / after 500,000 | | 1.084 | |" in said
    assert "| 5,000,000 | 441 | 540 | 440 | 539 |" in said
    assert "| 5,000,000, at rest | 3 | 540 | 2 | 539 |" in said
