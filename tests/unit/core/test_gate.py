"""Gates: their names, the order in which they are passed, and how stores keep them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.gate import Gate, GateKind, gates_from, gates_text, key_of, kind_of, to_pass

gates = st.builds(
    Gate,
    st.sampled_from([kind for kind in GateKind if kind is not GateKind.LOCK]),
    st.text(max_size=5),
    st.integers(0, 10),
    st.floats(0, 60),
)


def test_a_task_passes_latches_first_and_rates_last() -> None:
    named = [Gate(kind, "k") for kind in reversed(GateKind) if kind is not GateKind.LOCK]

    passed = [gate.name for gate in to_pass("doc", named)]

    assert passed == ["latch:k", "breaker:k", "lock:doc", "limit:k", "share:k", "rate:k"]


def test_a_plain_task_has_nothing_to_pass() -> None:
    assert to_pass(None, ()) == ()


def test_a_lock_alone_is_a_gate_for_one() -> None:
    assert to_pass("doc", ()) == (Gate(GateKind.LOCK, "doc", capacity=1),)


@given(st.lists(gates, max_size=4), st.lists(gates, max_size=4))
def test_no_two_tasks_pass_two_gates_in_different_order(one: list[Gate], other: list[Gate]) -> None:
    first = [gate.name for gate in to_pass("a", one)]
    second = [gate.name for gate in to_pass("a", other)]

    assert [name for name in first if name in second] == [name for name in second if name in first]


@given(gates)
def test_a_name_tells_kind_and_key_whatever_the_key_is(gate: Gate) -> None:
    assert (kind_of(gate.name), key_of(gate.name)) == (gate.kind, gate.key)


@given(st.lists(gates, max_size=4))
def test_what_a_store_keeps_reads_back_the_same(named: list[Gate]) -> None:
    kept = tuple(named)

    assert gates_from(gates_text(kept)) == kept
