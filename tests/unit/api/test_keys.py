"""Keys made from arguments: locks, unique tasks, fingerprints."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date

import pytest

from holdfast import IdempotencyConflict, InvalidOption
from holdfast.core.task import SubmitOutcome
from holdfast.testing import MemoryApp


@dataclass
class Order:
    id: int


def test_a_lock_template_is_filled_from_checked_arguments(app: MemoryApp) -> None:
    @app.task(lock="order:{order.id}:{day:%Y}:{n}")
    def ship(order: Order, n: int, day: date = date(2030, 1, 1)) -> None: ...

    assert ship.call(Order(7), "3").lock == "order:7:2030:3"  # type: ignore[arg-type] # coerced


def test_a_lock_may_be_a_function_of_the_arguments(app: MemoryApp) -> None:
    @app.task(lock=lambda first, /, *rest, key: None if key is None else f"{first}-{rest}-{key}")
    def work(first: int, /, *rest: int, key: str | None = None) -> None: ...

    assert work.call(1, 2, 3, key="k").lock == "1-(2, 3)-k"
    assert work.call(1).lock is None


def test_a_lock_given_at_submit_is_taken_literally(app: MemoryApp) -> None:
    @app.task(lock="doc:{doc}")
    def edit(doc: int) -> None: ...

    assert edit.options(lock="{doc.__class__}").call(1).lock == "{doc.__class__}"


@pytest.mark.parametrize("answer", ["", 5, "x" * 501, b"x"])
def test_a_function_that_makes_no_key_is_refused(app: MemoryApp, answer: object) -> None:
    @app.task(lock=lambda: answer)  # type: ignore[arg-type] # the point
    def work() -> None: ...

    with pytest.raises(InvalidOption, match=r"^lock: expected"):
        work.submit()


def test_a_template_that_fails_names_itself(app: MemoryApp) -> None:
    @app.task(lock="order:{order.id}")
    def ship(order: Order | None) -> None: ...

    with pytest.raises(InvalidOption, match=r"'order:\{order.id\}' does not work for these"):
        ship.submit(None)


def test_an_async_function_makes_no_keys(app: MemoryApp) -> None:
    async def key() -> str:
        return "k"

    with pytest.raises(InvalidOption, match="a plain function"):
        app.task(lock=key)(lambda: None)  # type: ignore[arg-type] # the point


def test_unique_true_goes_by_the_arguments(app: MemoryApp) -> None:
    @app.task(unique=True)
    def report(day: date, parts: set[str], more: dict[str, int]) -> None: ...

    first = report.submit(date(2030, 1, 1), {"a", "b", "c"}, {"x": 1, "y": 2})
    again = report.submit(date(2030, 1, 1), {"c", "b", "a"}, {"y": 2, "x": 1})
    other = report.submit(date(2030, 1, 2), {"a", "b", "c"}, {"x": 1, "y": 2})

    assert (first.created, again.created, other.created) == (True, False, True)
    assert (again.id, again.outcome) == (first.id, SubmitOutcome.UNIQUE_KEY)


def test_unique_may_be_a_template_or_a_function(app: MemoryApp) -> None:
    @app.task(unique="{day}")
    def daily(day: date, note: str) -> None: ...

    @app.task(unique=lambda n: f"parity:{n % 2}")
    def parity(n: int) -> None: ...

    assert daily.call(date(2030, 1, 1), "x").unique_key == "2030-01-01"
    assert [parity.submit(n).created for n in (1, 2, 3)] == [True, True, False]


def test_a_unique_key_at_submit_wins(app: MemoryApp) -> None:
    @app.task(unique=True)
    def work(n: int) -> None: ...

    assert work.options(unique_key="mine").call(1).unique_key == "mine"


def test_the_same_body_under_one_idempotency_key_is_one_task(app: MemoryApp) -> None:
    @app.task
    def pay(amount: int, to: str = "ann") -> None: ...

    once = pay.options(idempotency_key="k")
    first, again = once.submit(5), once.submit(amount=5, to="ann")

    assert (again.id, again.created) == (first.id, False)
    assert again.outcome is SubmitOutcome.IDEMPOTENCY_KEY


def test_another_body_under_one_idempotency_key_is_refused(app: MemoryApp) -> None:
    @app.task
    def pay(amount: int) -> None: ...

    @app.task
    def refund(amount: int) -> None: ...

    pay.options(idempotency_key="k").submit(5)

    with pytest.raises(IdempotencyConflict):
        pay.options(idempotency_key="k").submit(6)
    with pytest.raises(IdempotencyConflict):
        refund.options(idempotency_key="k").submit(5)
    assert app.count() == 1


def test_fingerprints_are_equal_in_every_process() -> None:
    script = (
        "from holdfast.testing import MemoryApp\n"
        "app = MemoryApp()\n"
        "def f(s: set[str], d: dict[int, frozenset[str]], b: bytes) -> None: ...\n"
        "task = app.task(name='f')(f)\n"
        "words = {'a', 'b', 'c', 'd', 'e'}\n"
        "call = task.options(idempotency_key='k').call(words, {2: words, 1: words}, b'\\xff')\n"
        "print(call.fingerprint)\n"
    )

    prints = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(prints) == 1
    assert len(prints.pop().strip()) == 40


def test_keys_belong_to_the_owner_and_are_shown_as_they_were_given(app: MemoryApp) -> None:
    @app.task
    def work(n: int) -> None: ...

    annas = work.options(owner="anna", unique_key="u", idempotency_key="i")
    first, again = annas.submit(1), annas.submit(1)
    other = work.options(owner="bert", unique_key="u", idempotency_key="i").submit(2)
    nobodys = work.options(unique_key="u", idempotency_key="i").submit(3)

    assert first.id == again.id
    assert len({first.id, other.id, nobodys.id}) == 3
    for handle, owner in ((first, "anna"), (other, "bert"), (nobodys, None)):
        task = handle.task()
        assert (task.owner, task.unique_key, task.idempotency_key) == (owner, "u", "i")
    (found,) = app.list(owner="bert", unique_key="u").tasks
    assert (found.id, found.unique_key) == (other.id, "u")
    assert other.cancel().unique_key == "u"
    with pytest.raises(IdempotencyConflict, match="'i' was already used") as conflict:
        annas.submit(2)
    assert conflict.value.key == "i"
