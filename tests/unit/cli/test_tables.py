"""How tasks and workers look to people."""

from __future__ import annotations

import io

import pytest

from holdfast.cli.screen import Screen
from holdfast.cli.tables import _worker_row, show_tree
from holdfast.core.task import Reason, State, TaskError, TaskId
from holdfast.core.tree import TaskTree
from holdfast.testing.factories import worker_info


def test_a_worker_that_a_body_blocks_says_by_which_task() -> None:
    row = _worker_row(worker_info(blocked_by=TaskId("0197f3c2")))

    assert "active, blocked by 0197f3c2" in row
    assert "active" in _worker_row(worker_info())


TREE = TaskTree(
    id=TaskId("p"), name="holdfast.batch", state=State.BLOCKED, ended=1, total=4, left_out=1,
    children=(
        TaskTree(id=TaskId("a"), name="work", state=State.COMPLETED),
        TaskTree(
            id=TaskId("g"), name="holdfast.batch", state=State.FAILED, ended=1, total=1,
            children=(
                TaskTree(
                    id=TaskId("b"), name="work", state=State.CANCELLED, reason=Reason.EXPIRED
                ),
            ),
        ),
        TaskTree(
            id=TaskId("c"), name="work", state=State.FAILED,
            error=TaskError(type="ValueError", message="no luck\nat all"),
        ),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "fork", "last", "on"),
    [("utf-8", "├── ", "└── ", "│   "), ("ascii", "|-- ", "`-- ", "|   ")],
)
def test_a_tree_is_drawn_with_how_many_have_ended(
    encoding: str, fork: str, last: str, on: str
) -> None:
    raw = io.BytesIO()
    paper = io.TextIOWrapper(raw, encoding=encoding)

    show_tree(Screen(paper), TREE)

    paper.flush()
    assert raw.getvalue().decode(encoding).splitlines() == [
        "holdfast.batch  p  blocked  1 of 4",
        f"{fork}work  a  completed",
        f"{fork}holdfast.batch  g  failed  1 of 1",
        f"{on}{last}work  b  cancelled (expired)",
        f"{fork}work  c  failed  ValueError: no luck",
        f"{last}1 more",
    ]
