"""Callback URLs: what may be one, as far as the text of it tells.

A server calls them, so they must not lead into its own network. Names are looked up when the call
is made (`webhooks.posting`); here only what is plainly wrong is refused, where the submitter sees
it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from holdfast.errors import InvalidOption

LONGEST = 2000
USUAL_PORTS: Final = frozenset({80, 443})
"""Elsewhere mail, databases and the like may listen: whoever submits must not speak to them."""

_PRINTABLE: Final = re.compile(r"[!-~]+", re.ASCII)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_6: Final = ipaddress.ip_network("2000::/3")
"""All that has ever been given out of version 6."""
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "3fff::/20")
)
"""Of the registries of special addresses what not every Python takes for one."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_callback(url: object, allowed_hosts: Collection[str] = ()) -> str:
    """The URL, if it may be called; else `InvalidOption` says why not.

    Hosts in `allowed_hosts`, by name or as `host:port`, may be anything, a private address too.
    """
    parts = _parts(url)
    host, port = parts.hostname or "", port_of(parts)
    if is_allowed(host, port, allowed_hosts):
        return str(url)
    if not _may_be_public(host):
        raise InvalidOption(
            "callback",
            f"{host!r} is not a public address, so it is not called. If it is meant, add it to the "
            "setting `callback_hosts`.",
        )
    if port not in USUAL_PORTS:
        raise InvalidOption(
            "callback",
            f"port {port} is not called, only 80 and 443. If it is meant, add '{host}:{port}' to "
            "the setting `callback_hosts`.",
        )
    return str(url)


def port_of(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def is_allowed(host: str, port: int, allowed_hosts: Collection[str]) -> bool:
    """Whether it was allowed by name."""
    return host in allowed_hosts or f"{host}:{port}" in allowed_hosts


def is_public(address: Address) -> bool:
    """Whether an address belongs to the open internet, also by what is wrapped up in it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo is not None:
            inner = address.teredo[1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _GLOBAL_6:
            return False
    if any(address in network for network in _SPECIAL if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _parts(url: object) -> SplitResult:
    if not isinstance(url, str) or len(url) > LONGEST or not _PRINTABLE.fullmatch(url):
        raise _refusal(url, f"expected a URL of {LONGEST} plain characters at most")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refusal(url, f"expected a URL that can be read ({error})") from None
    if parts.scheme not in {"https", "http"} or not parts.hostname or port == 0:
        raise _refusal(url, "expected https://host/path or http://host/path")
    if parts.username is not None or parts.password is not None:
        raise InvalidOption("callback", "expected a URL without a user name or a password in it")
    return parts


def _may_be_public(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return False
    with suppress(ValueError):
        return is_public(ipaddress.ip_address(host))
    return True


def _refusal(url: object, expected: str) -> InvalidOption:
    text = repr(url)
    return InvalidOption("callback", f"{expected}, got {text if len(text) < 80 else text[:77]}…")
