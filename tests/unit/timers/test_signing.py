"""A call is known by its signature, and only for a while."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.timers.signing import GRACE, TokenRefused, key_id, read, sign

OLD, NEW = "an old secret of theirs", "a new secret of theirs"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_what_was_signed_is_read_again(key: str) -> None:
    token = read([NEW], sign([NEW], key, AT))

    assert (token.key, token.is_signed) == (key, True)


def test_the_same_call_has_the_same_token_and_shows_no_secret() -> None:
    token = sign([NEW, OLD], "task:1", AT)

    assert token == sign([NEW], "task:1", AT)
    assert token.split(".")[1] == key_id(NEW)
    assert NEW not in token


def test_while_the_secret_is_changed_both_hold() -> None:
    before, after = sign([OLD], "task:1", AT), sign([NEW, OLD], "task:1", AT)

    assert read([NEW, OLD], before).key == read([NEW, OLD], after).key == "task:1"
    with pytest.raises(TokenRefused, match="timer_previous_secret"):
        read([NEW], before)


@given(place=st.integers(0, 200), other=st.characters(codec="ascii"))
def test_a_token_with_any_other_character_is_refused(place: int, other: str) -> None:
    token = sign([NEW], "task:1", AT)
    place %= len(token)
    forged = token[:place] + other + token[place + 1 :]

    if forged != token:
        with pytest.raises(TokenRefused):
            read([NEW], forged)


@pytest.mark.parametrize(
    "text",
    ["", "v1", "v1....", "v2.a.1.dGFzaw.b", "v1.-.x.dGFzaw.", "v1.-.1.=.", "v1.-.1.é.", "v" * 9999],
)
def test_what_is_no_token_is_refused_as_such(text: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        read([NEW], text)

    assert caught.value.code == "invalid_timer_token"


def test_an_unsigned_token_says_that_it_is_and_cannot_pass_for_a_signed_one() -> None:
    token = sign([], "task:1", AT)

    assert not read([NEW], token).is_signed
    with pytest.raises(TokenRefused):
        read([NEW], token + "0")


def test_a_token_expires_a_day_after_its_time() -> None:
    token = read([NEW], sign([NEW], "task:1", AT))

    token.check_expiry(AT + GRACE - timedelta(seconds=1))
    with pytest.raises(TokenRefused) as caught:
        token.check_expiry(AT + GRACE)
    assert caught.value.code == "expired_timer"
