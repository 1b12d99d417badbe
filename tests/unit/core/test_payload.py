"""What a payload may hold: refused values are named by their place."""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.payload import MAX_DEPTH, check_size, check_text, check_value
from holdfast.core.task import Json
from holdfast.errors import InvalidArguments, PayloadRefused

good_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | good_text,
    lambda inner: st.lists(inner) | st.dictionaries(good_text, inner),
    max_leaves=20,
)


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


class Colour(enum.StrEnum):
    RED = "red"


@given(json_values)
def test_plain_json_is_taken_and_survives_its_encoding(value: Json) -> None:
    check_value(value)

    assert json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("value", "path", "word"),
    [
        ({"a": "x\x00y"}, "$.a", "NUL"),
        ({"a\x00": 1}, "$ key", "NUL"),
        (["ok", "\ud800"], "$[1]", "surrogate"),
        ({"k": {"\udfff": 1}}, "$.k key", "surrogate"),
        ({"a": [1, float("nan")]}, "$.a[1]", "JSON number"),
        (float("inf"), "$", "JSON number"),
        ([-float("inf")], "$[0]", "JSON number"),
        ({"n": 2**63}, "$.n", "64 bits"),
        ({"n": -(2**63) - 1}, "$.n", "64 bits"),
        ({"n": 10**5000}, "$.n", "64 bits"),
        ({1: "x"}, "$", "keys are text"),
        ({"a": {None: "x"}}, "$.a", "keys are text"),
        ({"t": datetime(2026, 1, 1, tzinfo=UTC)}, "$.t", "datetime"),
        ({"b": b"bytes"}, "$.b", "bytes"),
        ({"s": {1, 2}}, "$.s", "set"),
        ({"c": Colour.RED}, "$.c", "Colour"),
        ({"o": object()}, "$.o", "object"),
    ],
)
def test_a_value_no_store_may_hold_is_refused_by_its_place(
    value: Json, path: str, word: str
) -> None:
    with pytest.raises(PayloadRefused, match=word) as refused:
        check_value(value)

    assert refused.value.path == path
    assert refused.value.problems[0][0] == path
    assert isinstance(refused.value, InvalidArguments)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, True, 1e308, "", [], {}, ()])
def test_values_at_the_edge_are_taken(value: Json) -> None:
    check_value(value)


def test_sixty_four_levels_are_taken_and_the_next_is_refused() -> None:
    check_value(nested(MAX_DEPTH))

    with pytest.raises(PayloadRefused, match="64 levels") as refused:
        check_value(nested(MAX_DEPTH + 1))

    assert refused.value.path == "$" + "[0]" * MAX_DEPTH


def test_levels_count_through_lists_and_objects_alike() -> None:
    value: Json = {}
    for level in range(MAX_DEPTH - 1):
        value = {"x": value} if level % 2 else [value]
    check_value(value)

    with pytest.raises(PayloadRefused):
        check_value([value])


def test_a_value_nested_beyond_all_measure_is_refused_not_a_crash() -> None:
    with pytest.raises(PayloadRefused):
        check_value(nested(100_000))


def test_the_first_offender_is_named_and_the_caller_may_name_the_root() -> None:
    with pytest.raises(PayloadRefused) as refused:
        check_value({"fine": 1, "bad": float("nan"), "worse": "\x00"}, "order")

    assert refused.value.path == "order.bad"


def test_a_payload_as_large_as_the_limit_is_taken_and_one_byte_more_is_refused() -> None:
    check_size(b"x" * 100, 100)

    with pytest.raises(PayloadRefused, match=r"101 bytes.*limit is 100 .*max_payload"):
        check_size(b"x" * 101, 100)


def test_a_result_too_large_is_called_a_result() -> None:
    with pytest.raises(PayloadRefused, match="max_result"):
        check_size(b"xx", 1, what="result")


@given(good_text)
def test_good_text_is_taken(text: str) -> None:
    check_text(text, "$")


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800", "é\udc80"])
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(PayloadRefused):
        check_text(text, "$.x")
