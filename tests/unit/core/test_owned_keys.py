"""Keys belong to their owner: no two owners share one, whatever they write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.keys import shown_key, stored_key

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
OWNERS = st.none() | TEXTS


@given(OWNERS, TEXTS)
def test_a_key_is_shown_as_it_was_given(owner: str | None, key: str) -> None:
    assert shown_key(stored_key(owner, key)) == key


@given(OWNERS, TEXTS, OWNERS, TEXTS)
def test_two_owners_never_have_the_same_key(
    owner: str | None, key: str, other: str | None, another: str
) -> None:
    is_one = stored_key(owner, key) == stored_key(other, another)

    assert is_one == ((owner, key) == (other, another))


def test_nobody_can_write_anothers_key_by_hand() -> None:
    annas = stored_key("anna", "k")

    assert annas is not None
    for owner in (None, "bert", annas, annas[1:33]):
        for key in (annas, annas[1:], annas[33:], f"\x1f{annas}"):
            assert stored_key(owner, key) != annas


def test_a_key_without_an_owner_is_kept_as_it_is() -> None:
    assert stored_key(None, "k") == "k"
    assert stored_key(None, None) is None
    assert stored_key("anna", None) is None
