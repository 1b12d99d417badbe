"""The ids of attempts as spans."""

from __future__ import annotations

from holdfast.core.trace import EXAMPLE, is_sampled, span_id_of, traceparent_of

TASK = "0192f0c1-7a3b-7cc0-8000-1f2e3d4c5b6a"


def test_every_attempt_has_a_span_id_of_its_own_and_the_first_that_of_the_task() -> None:
    assert span_id_of(TASK) == span_id_of(TASK, 1) == "80001f2e3d4c5b6a"
    assert span_id_of(TASK, 0) == span_id_of(TASK)  # not started yet
    assert len({span_id_of(TASK, attempt) for attempt in range(1, 1000)}) == 999
    assert traceparent_of(TASK, EXAMPLE, 3)[36:52] == span_id_of(TASK, 3)


def test_the_last_bit_of_the_flags_says_whether_a_trace_is_sampled() -> None:
    assert is_sampled(EXAMPLE)
    assert is_sampled(EXAMPLE[:-2] + "03")
    assert not is_sampled(EXAMPLE[:-2] + "02")
