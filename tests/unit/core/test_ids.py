"""Task ids: valid UUIDs of version 7 that sort by time."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ids import is_task_id, just_before, uuid7

milliseconds = st.integers(0, 2**48 - 1)
random_bits = st.integers(0, 2**74 - 1)


@given(milliseconds, random_bits)
def test_an_id_is_a_uuid_of_version_seven(ms: int, bits: int) -> None:
    text = uuid7(ms, bits)

    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert str(parsed) == text
    assert is_task_id(text)


@given(milliseconds, random_bits)
def test_an_id_tells_its_time_and_keeps_its_random_bits(ms: int, bits: int) -> None:
    value = uuid.UUID(uuid7(ms, bits)).int

    assert value >> 80 == ms
    assert (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1 == bits


@given(milliseconds, milliseconds, random_bits, random_bits)
def test_ids_sort_by_time(ms: int, other: int, bits: int, more: int) -> None:
    if ms < other:
        assert uuid7(ms, bits) < uuid7(other, more)


@given(milliseconds, random_bits, random_bits)
def test_ids_of_one_millisecond_sort_by_their_random_bits(ms: int, bits: int, more: int) -> None:
    assert (uuid7(ms, bits) < uuid7(ms, more)) == (bits < more)


def test_the_text_form_is_the_canonical_one() -> None:
    assert uuid7(0x019A5B7E1234, 0) == "019a5b7e-1234-7000-8000-000000000000"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "019a5b7e12347000800000000000000",
        "019A5B7E-1234-7000-8000-000000000000",
        "019a5b7e-1234-7000-8000-00000000000g",
        "019a5b7e-1234-7000-8000-0000000000000",
        "019a5b7e-1234-7000-8000-000000000000 ",
        "019a5b7e12-34-7000-8000-000000000000",
        "٠19a5b7e-1234-7000-8000-000000000000",
        "-".join(["0" * 8] * 5),
    ],
)
def test_other_text_is_no_id(text: str) -> None:
    assert not is_task_id(text)


@given(ms=st.integers(2**16, 2**48 - 1), bits=st.integers(0, 2**74 - 1), length=st.integers(8, 32))
def test_a_list_after_the_edge_of_a_beginning_has_every_id_that_begins_so(
    ms: int, bits: int, length: int
) -> None:
    beginning = uuid7(ms, bits).replace("-", "")[:length]

    edge = just_before(beginning)

    assert is_task_id(edge)
    assert edge.replace("-", "")[:length] < beginning
    assert edge < uuid7(ms, bits)


def test_an_id_that_ends_with_zeros_is_found_by_its_beginning() -> None:
    assert just_before("0197f3c28a517cc09d4e1b2c3d4e5f6") == "0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f5f"
    assert just_before("0197f3c2") == "0197f3c1-ffff-ffff-ffff-ffffffffffff"
    assert just_before("00000000") == "00000000-0000-0000-0000-000000000000"
