"""What a task says cannot pass for what the command says."""

from __future__ import annotations

import io

from holdfast.cli.screen import Screen


def test_a_cell_stays_in_its_row_whatever_is_in_it() -> None:
    file = io.StringIO()

    Screen(file).table(("id", "what"), [("1", "a\nb\tc\rd\x1b[2Je\u2028f\u202eg\x85h")])

    assert file.getvalue().splitlines() == [
        "ID  WHAT",
        r"1   a\nb\tc\rd\x1b[2Je\u2028f\u202eg\x85h",
    ]


def test_a_field_stays_on_its_line() -> None:
    file = io.StringIO()

    Screen(file).fields([("error", "no\nstate  completed")])

    assert file.getvalue() == "error  no\\nstate  completed\n"
