"""JSON is read strictly, and twice where orjson alone would bend it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.bodies import DEEPEST, MOST_VALUES, parse
from holdfast.server.problems import Refused

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), inner
    ),
    max_leaves=20,
)  # fmt: skip


@given(values, st.booleans())
def test_what_was_sent_is_what_is_read(value: object, as_ascii: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=as_ascii).encode()) == value


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a": 1, "a": 2}', "a"),
        ('{"a": 1, "\\u0061": 2}', "a"),
        ('[{"x": {"a:": 1, "a:": 1}}]', "a:"),
        ('{"": 1, "b": ":", "": 2}', ""),
    ],
)
def test_a_key_that_comes_twice_is_refused_by_name(text: str, key: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text.encode())

    assert (refused.value.code, refused.value.field) == ("duplicate_key", key)


def test_the_same_key_in_two_objects_is_fine() -> None:
    assert parse(b'[{"a": 1}, {"a": 1}]') == [{"a": 1}, {"a": 1}]


def test_a_large_integer_is_not_rounded() -> None:
    assert parse(b"[18446744073709551617]") == [2**64 + 1]


def test_a_float_that_was_written_out_is_a_float() -> None:
    (number,) = parse(b"[18446744073709551616]")

    assert isinstance(number, float)
    assert number == 2**64


def test_depth_has_an_end() -> None:
    parse(b"[" * DEEPEST + b"]" * DEEPEST)

    with pytest.raises(Refused, match="deeper"):
        parse(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))


def test_values_are_counted_before_they_take_memory() -> None:
    with pytest.raises(Refused) as refused:
        parse(b"[" + b"0," * (MOST_VALUES + 1) + b"0]")

    assert refused.value.status == 413
