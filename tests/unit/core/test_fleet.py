"""The workers, as people are shown them."""

from __future__ import annotations

from holdfast.core.fleet import shown_capabilities


def test_only_capabilities_that_somebody_typed_are_shown() -> None:
    all_of_them = {"http", "task:shop.bill", "token:17", "gpu", "a100", "https"}

    assert shown_capabilities(all_of_them) == ["a100", "gpu", "https"]
