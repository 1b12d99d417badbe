"""What `holdfast top` makes of facts and keys, without a terminal."""

from __future__ import annotations

import os

import pytest

from holdfast.cli.terminal import Keys
from holdfast.cli.top_frame import Column, rows_of, shared, spark


def test_a_key_that_comes_in_two_parts_is_one_key() -> None:
    ours, theirs = os.pipe()
    keys = Keys(ours)

    read = []
    for part in ("\x1b[B\x1b", "[", "A", "p\x1b", "y", "\t\x1bOB"):
        os.write(theirs, part.encode())
        read.append(keys.read())
    os.close(theirs)

    assert read == [["down"], [], ["up"], ["p"], ["\x1b", "y"], ["tab", "down"]]
    assert keys.read() is None
    os.close(ours)


@pytest.mark.parametrize(
    ("room", "wanted", "given"),
    [
        (0, [3, 1], [0, 0]),
        (1, [3, 1], [1, 0]),
        (3, [3, 1, 9], [1, 1, 1]),
        (6, [3, 1, 9], [3, 1, 2]),
        (99, [3, 1, 9], [3, 1, 9]),
        (5, [], []),
    ],
)
def test_lines_are_shared_one_by_one_until_nobody_wants_more(
    room: int, wanted: list[int], given: list[int]
) -> None:
    assert shared(room, wanted) == given


def test_a_narrow_table_leaves_out_what_is_spare_and_then_cuts_its_first_column() -> None:
    columns = [
        Column("queue", ["a_rather_long_name", "数据"], right=False),
        Column("ready", ["12", "3"]),
        Column("waiting", ["1", "2"], spare=1),
    ]

    assert rows_of(columns, 60) == [
        "  queue               ready  waiting",
        "  a_rather_long_name     12        1",
        "  数据                    3        2",
    ]
    assert rows_of(columns, 20) == [
        "  queue        ready",
        "  a_rather_l…     12",
        "  数据             3",
    ]


def test_the_sparkline_is_as_high_as_its_highest_and_flat_when_nothing_happens() -> None:
    assert spark([0, 1, 2, 4]) == "▁▃▅█"
    assert spark([0, 0]) == "▁▁"
    assert spark([0, 9], ascii_only=True) == "_#"
    assert spark([]) == ""
