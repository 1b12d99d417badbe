"""E-mail addresses and mail servers, as settings and recipients name them."""

from __future__ import annotations

import pytest

from holdfast.core.mail_address import Tls, parse_address, parse_smtp_url


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("ann@example.com", "ann@example.com"),
        ("o'hara+tag.x@mail.example.co.uk", "o'hara+tag.x@mail.example.co.uk"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        ("root@localhost", "root@localhost"),
    ],
)
def test_an_address_is_one_plain_address(given: str, read: str) -> None:
    assert parse_address(given) == read


@pytest.mark.parametrize(
    "given",
    [
        "", "ann", "@example.com", "ann@", "ann@example", "a b@example.com", "ann@exa mple.com",
        "Ann <ann@example.com>", "ann@example.com,bob@example.com", "ann@example.com\n",
        "ann\r\n@example.com", "ann@-example.com", "ann@example..com", ".ann@example.com",
        f"{'a' * 65}@example.com", f"a@{'b' * 250}.com", "ann@[127.0.0.1]", None, 7,
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="expected one e-mail address"):
        parse_address(given)


def test_the_url_of_a_mail_server_says_how_it_is_spoken_to() -> None:
    login = parse_smtp_url("smtp://us%40er:p%2Fw@mail.example")
    assert (login.host, login.port, login.tls) == ("mail.example", 587, Tls.STARTTLS)
    assert (login.user, login.password) == ("us@er", "p/w")
    assert "p/w" not in repr(login)
    implicit = parse_smtp_url("smtps://mail.example")
    assert (implicit.port, implicit.tls) == (465, Tls.IMPLICIT)
    assert parse_smtp_url("smtp://localhost:25?starttls=no").tls is Tls.NONE


@pytest.mark.parametrize(
    "given",
    [
        "mail.example", "http://mail.example", "smtp://", "smtp://mail.example/path",
        "smtp://mail.example?tls=yes", "smtp://mail.example?starttls=maybe",
        "smtp://mail.example:x", "smtp://me:secret-word@mail.example?starttls=no", 7,
    ],
)  # fmt: skip
def test_a_mail_server_that_makes_no_sense_is_refused_without_its_secrets(given: object) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        parse_smtp_url(given)

    assert "secret-word" not in str(refused.value)
