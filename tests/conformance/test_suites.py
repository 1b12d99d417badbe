"""The suites themselves: none is forgotten, and none hides another's test."""

from __future__ import annotations

from collections import Counter

from holdfast.testing import suites
from holdfast.testing.suites import StoreConformance, StoreSuite


def test_no_two_suites_have_a_test_of_the_same_name() -> None:
    names = Counter(
        name for suite in StoreConformance.__mro__ for name in vars(suite) if name[:5] == "test_"
    )

    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) > 200


def test_the_conformance_class_holds_every_suite() -> None:
    every = {
        suite
        for name in suites.__all__
        if isinstance(suite := getattr(suites, name), type) and issubclass(suite, StoreSuite)
    }

    assert every == set(StoreConformance.__mro__) - {object}
