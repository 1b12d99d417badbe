"""E-mail addresses and the URL of a mail server, read and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

LONGEST: Final = 254
LONGEST_LOCAL: Final = 64
EXAMPLE: Final = "'smtp://user:password@mail.example.com:587'"

_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def parse_address(value: object) -> str:
    """One plain e-mail address, its domain in ASCII; `ValueError` says what is wrong with it."""
    text = value if isinstance(value, str) else ""
    local, at, domain = text.rpartition("@")
    if at and not domain.isascii():
        try:
            domain = domain.encode("idna").decode("ascii")
        except UnicodeError:
            domain = ""
    labels = domain.split(".")
    is_good = (
        len(local) <= LONGEST_LOCAL
        and len(local) + len(domain) < LONGEST
        and _LOCAL.fullmatch(local) is not None
        and all(_LABEL.fullmatch(label) for label in labels)
        and (len(labels) > 1 or domain == "localhost")
    )
    if not is_good:
        shown = repr(value)
        raise ValueError(
            "expected one e-mail address such as 'ann@example.com', got "
            f"{shown if len(shown) < 80 else shown[:77] + '…'}"
        )
    return f"{local}@{domain}"


class Tls(StrEnum):
    """How the way to the mail server is kept secret."""

    IMPLICIT = "implicit"
    STARTTLS = "starttls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mail is handed in."""

    host: str
    port: int
    tls: Tls
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def parse_smtp_url(value: object) -> MailServer:
    """`smtp://` asks for STARTTLS and sends nothing without it, unless `?starttls=no` says that
    this is meant; `smtps://` speaks TLS from the first byte. A password never goes to another
    machine in the clear. `ValueError` does not repeat what it was given: there are secrets in it.
    """
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        port = parts.port
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise ValueError(f"expected a URL such as {EXAMPLE}") from None
    if parts.scheme not in {"smtp", "smtps"} or not parts.hostname or parts.path not in {"", "/"}:
        raise ValueError(f"expected a URL such as {EXAMPLE}, or smtps:// for TLS from the start")
    server = MailServer(
        host=parts.hostname,
        port=port or (465 if parts.scheme == "smtps" else 587),
        tls=_tls(parts.scheme, query),
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )
    if server.password and server.tls is Tls.NONE and server.host not in _LOOPBACK:
        raise ValueError("expected STARTTLS or smtps://: a password is not sent in the clear")
    return server


def _tls(scheme: str, query: dict[str, list[str]]) -> Tls:
    words = query.pop("starttls", ["required"])
    if query or words not in (["required"], ["no"]):
        raise ValueError("expected no query but ?starttls=required (the default) or ?starttls=no")
    if scheme == "smtps":
        return Tls.IMPLICIT
    return Tls.NONE if words == ["no"] else Tls.STARTTLS
