"""A token that is bound to a rate: exact, whenever it asks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.core.token import Bounds, RateLimit, Scope, Token
from holdfast.server.limits import Windows
from holdfast.server.problems import Refused


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def token(rate: RateLimit | None, name: str = "a") -> Token:
    return Token(
        id=name, name=name, scopes=frozenset({Scope.SUBMIT}), digest=b"", bounds=Bounds(rate=rate),
        created_at=datetime(2030, 1, 1, tzinfo=UTC),
    )  # fmt: skip


def refused(windows: Windows, of: Token, number: int = 1) -> str:
    with pytest.raises(Refused) as refusal:
        windows.take(of, number)
    assert (refusal.value.status, refusal.value.code) == (429, "rate_limited")
    return refusal.value.headers["Retry-After"]


def test_any_stretch_of_time_has_as_many_as_allowed_and_no_more() -> None:
    clock, of = Clock(), token(RateLimit(3, 60))
    windows = Windows(clock)

    windows.take(of)
    clock.now += 50
    windows.take(of)
    windows.take(of)
    assert refused(windows, of) == "10"
    clock.now += 9.5
    assert refused(windows, of) == "1"
    clock.now += 0.5
    windows.take(of)
    assert refused(windows, of) == "50"


def test_many_are_counted_all_or_none() -> None:
    clock, of = Clock(), token(RateLimit(10, 60))
    windows = Windows(clock)

    windows.take(of, 6)
    clock.now += 10
    assert refused(windows, of, 5) == "50"
    windows.take(of, 4)
    assert refused(windows, of, 11) == "60"  # never: there is no more room than ten


def test_others_and_unbound_tokens_are_not_held_up() -> None:
    windows = Windows(Clock())
    windows.take(token(RateLimit(1, 60)))

    windows.take(token(RateLimit(1, 60), "b"))
    for _ in range(100):
        windows.take(token(None, "c"))
