"""Failures are counted by address, within bounds."""

from __future__ import annotations

import pytest

from holdfast.server import brake
from holdfast.server.brake import Brake
from holdfast.server.problems import Refused


def test_one_address_does_not_brake_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brake, "MOST_FAILURES", 1)
    one = Brake()
    one.failed("192.0.2.1")

    one.failed("192.0.2.2")
    with pytest.raises(Refused, match="try again in"):
        one.failed("192.0.2.1")


def test_a_network_of_version_6_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brake, "MOST_FAILURES", 1)
    one = Brake()
    one.failed("2001:db8::1")

    one.failed("2001:db8:0:1::1")
    with pytest.raises(Refused):
        one.failed("2001:db8::2")


def test_it_remembers_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brake, "MOST_ADDRESSES", 10)
    one = Brake()
    for n in range(1000):
        one.failed(f"host{n}")

    assert len(one._failures) <= 10
