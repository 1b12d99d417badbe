"""One POST to a stranger's URL, made so that it can do no harm here.

The name is looked up once and the connection goes to that very address, whatever the name says a
moment later; the host stays in the TLS handshake and in the Host header. Only public addresses, but
for hosts that were allowed by name. Nothing of the answer matters but its status: no redirect is
followed, no body is read, and the whole of it has a time limit. That is little enough to be done
here, without a client that has ideas of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Collection, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from holdfast.definitions.callbacks import check_callback, is_allowed, is_public, port_of
from holdfast.errors import HoldfastError, InvalidOption

LONGEST_HEAD = 16 * 1024
TIME_LIMIT = 10.0


class NotCalled(Exception):
    """The URL leads where it must not; trying again is pointless."""


class CallFailed(HoldfastError):
    """It did not work this time."""


def host_of(url: str) -> str:
    """The host that answers for a URL."""
    return urlsplit(url).hostname or ""


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, allowed_hosts: Collection[str] = ()
) -> int:
    """POST and return the status."""
    try:
        check_callback(url, allowed_hosts)
    except InvalidOption as error:
        raise NotCalled(str(error)) from None
    try:
        async with asyncio.timeout(TIME_LIMIT):
            return await _post(url, body, headers, allowed_hosts)
    except TimeoutError:
        raise CallFailed(f"no answer within {TIME_LIMIT:g} s") from None
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise CallFailed(f"{type(error).__name__}: {error}") from None


async def _post(
    url: str, body: bytes, headers: Mapping[str, str], allowed_hosts: Collection[str]
) -> int:
    parts = urlsplit(url)
    host, port, secure = parts.hostname or "", port_of(parts), parts.scheme == "https"
    address = await _address(host, port, may_be_private=is_allowed(host, port, allowed_hosts))
    reader, writer = await asyncio.open_connection(
        address,
        port,
        ssl=ssl.create_default_context() if secure else None,
        server_hostname=host if secure else None,
        limit=LONGEST_HEAD,
    )
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        writer.write(_head(path, parts.netloc, len(body), headers) + body)
        await writer.drain()
        return await _status(reader)
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), 1.0)


async def _address(host: str, port: int, *, may_be_private: bool) -> str:
    """The address to connect to. A name with even one private address is not called: it would be
    chance which one is met.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise CallFailed(f"{host!r} cannot be looked up: {error}") from None
    addresses = [str(address[0]) for *_, address in found]
    for address in addresses:
        if not may_be_private and not is_public(ipaddress.ip_address(address)):
            raise NotCalled(
                f"{host!r} leads to {address}, which is not a public address. If it is meant, add "
                "the host to the setting `callback_hosts`"
            )
    if not addresses:
        raise CallFailed(f"{host!r} has no address")
    return addresses[0]


def _head(path: str, host: str, length: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        f"Content-Length: {length}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


async def _status(reader: asyncio.StreamReader) -> int:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        version, _, rest = head.partition(b" ")
        code = rest[:3]
        if not version.startswith(b"HTTP/1.") or not code.isdigit():
            raise CallFailed("the answer is not HTTP")
        if int(code) >= 200:  # 1xx is not the answer yet
            return int(code)
