"""A task is settled by the number of its row only as long as the row is surely its own."""

from __future__ import annotations

from holdfast.core.task import TaskId
from holdfast.stores.sqlite.rownumbers import RowNumbers

A, B = TaskId("a"), TaskId("b")


def test_a_number_is_told_once() -> None:
    numbers = RowNumbers()
    numbers.learn([A, B], [1, 2])

    assert numbers.take(B) == 2
    assert numbers.take(B) is None
    assert numbers.take(A) == 1


def test_a_row_that_was_given_to_another_task_is_not_told_to_the_first() -> None:
    numbers = RowNumbers()
    numbers.learn([A], [7])
    numbers.learn([B], [7])

    assert numbers.take(A) is None
    assert numbers.take(B) == 7


def test_a_task_that_was_claimed_again_is_told_once_more() -> None:
    numbers = RowNumbers()
    numbers.learn([A], [7])
    numbers.take(A)
    numbers.learn([A], [7])

    assert numbers.take(A) == 7


def test_what_was_never_settled_here_does_not_pile_up() -> None:
    numbers = RowNumbers()
    for start in range(0, 300_000, 1_000):
        ids = [TaskId(str(n)) for n in range(start, start + 1_000)]
        numbers.learn(ids, range(start, start + 1_000))

    assert numbers.take(TaskId("5")) is None
    assert numbers.take(TaskId("299999")) == 299_999
