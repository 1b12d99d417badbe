"""The words that a handler's end leaves in the history."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from holdfast.codec.text import TRACEBACK_LIMIT, storable
from holdfast.worker.verdict import describe


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", "plain"), ("a\x00b", "a\\0b"), ("\udfff", "\\udfff"), ("ümläut €", "ümläut €")],
)
def test_text_that_no_store_can_hold_is_escaped(text: str, expected: str) -> None:
    assert storable(text, 100) == expected


def test_long_text_loses_its_middle_and_says_so() -> None:
    text = storable("a" * 5000 + "b" * 5000, 1000)

    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "9000 characters left out" in text
    assert len(text) < 1100


def test_an_error_that_cannot_be_printed_is_described_all_the_same() -> None:
    try:
        raise Unprintable
    except Unprintable as error:
        described = describe(error)

    assert described.type == "Unprintable"
    assert "__str__ raised" in described.message
    assert described.traceback is not None


def test_an_error_raised_by_us_alone_has_no_traceback() -> None:
    assert describe(ValueError("never raised")).traceback is None


def test_causes_and_groups_are_kept_in_the_traceback() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ExceptionGroup("both", [ValueError("one"), TypeError("two")]) from inner
    except ExceptionGroup as error:
        traceback = describe(error).traceback

    assert traceback is not None
    assert all(word in traceback for word in ("inner", "both", "one", "two"))
    assert len(traceback) <= TRACEBACK_LIMIT


def wrong(n: int) -> None:
    match n:
        case 1:
            raise ValueError("no such row", n)
        case 2:
            raise Unhappy(f"ümläut\n{n}")
        case 3:
            raise KeyError
    raise Unprintable


class Unhappy(Exception):
    pass


def missing(_: int) -> None:
    raise NameError("name 'valu' is not defined", name="valu")


@pytest.mark.parametrize("note", [None, "seen twice"])
@pytest.mark.parametrize(
    ("body", "n"), [(wrong, 1), (wrong, 2), (wrong, 3), (wrong, 4), (missing, 1)]
)
def test_the_same_failure_again_has_the_traceback_that_python_prints(
    body: Callable[[int], None], n: int, note: str | None
) -> None:
    with pytest.raises(Exception) as caught:
        body(n)
    error = caught.value
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    if note is not None:
        error.add_note(note)

    for _ in range(2):
        assert describe(error).traceback == "".join(traceback.format_exception(error))
