"""W3C trace context: what is read, and what is said of a task."""

from __future__ import annotations

import pytest

from holdfast.core.trace import EXAMPLE, parse_traceparent, read_traceparent, traceparent_of

TASK = "019df000-0000-7000-8000-0000000000ab"


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE,
        f" {EXAMPLE}\t",
        "cc" + EXAMPLE[2:],
        "cc" + EXAMPLE[2:] + "-what-the-future-brings",
    ],
)
def test_what_is_understood_is_kept_as_version_00(text: str) -> None:
    assert read_traceparent(text) == EXAMPLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        EXAMPLE[:-1],
        EXAMPLE.upper(),
        EXAMPLE + "-more",
        f" {EXAMPLE}-more",
        "ff" + EXAMPLE[2:],
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        EXAMPLE + "\n",
    ],
)
def test_what_is_malformed_is_refused_with_an_example(text: str) -> None:
    assert read_traceparent(text) is None
    with pytest.raises(ValueError, match=f"such as {EXAMPLE}"):
        parse_traceparent(text)


def test_a_task_is_the_parent_in_what_it_says_and_keeps_trace_and_flags() -> None:
    assert traceparent_of(TASK, EXAMPLE[:-2] + "00") == f"{EXAMPLE[:36]}80000000000000ab-00"
    assert traceparent_of(TASK, None) == f"00-{TASK.replace('-', '')}-80000000000000ab-01"
