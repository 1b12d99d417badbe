"""Finds the server to talk to, and gets a line to it that is ready for use.

All keys of a store have one hash tag, so they live on one node, of a cluster as well. So a cluster
or sentinels only answer *where*; from then on it is one server like any other, and when it says
that it no longer is the one (`MOVED`, `READONLY`), or is gone, it is looked for again.
"""

from __future__ import annotations

import binascii
from collections.abc import Awaitable, Callable, Sequence

from holdfast.dispatch.redis.address import Address, Host, Kind
from holdfast.dispatch.redis.line import Line, Word
from holdfast.dispatch.redis.resp import Push, Refused, Reply

HANDSHAKE = 1.0
"""Seconds for each step until a line is ready."""


async def open_line(
    address: Address, tag: str, *, turn: int, heard: Callable[[Push], None]
) -> Line:
    """A line to the server that has the keys with this hash tag, logged in.

    `turn` counts the attempts: each asks another one of several hosts first.
    """
    line = await Line.open(address, await _find(address, tag, turn), heard)
    try:
        await _greet(line, address)
        if not await _is_master(line):
            raise ConnectionError("it is a replica")
    except BaseException as error:
        line.drop(ConnectionError(str(error)))
        raise
    return line


async def _is_master(line: Line) -> bool:
    try:
        role = await line.ask("ROLE", patience=HANDSHAKE)
    except Refused:
        return True  # not for everybody to ask; a replica will refuse to write soon enough
    return isinstance(role, list) and role[:1] == [b"master"]


async def open_ear(
    address: Address, host: Host, channel: str, heard: Callable[[Push], None]
) -> Line:
    """A line to that server which only hears what is said on the channel."""
    line = await Line.open(address, host, heard)
    try:
        await _greet(line, address)
        line.tell("SUBSCRIBE", channel)
        await line.ask("PING", patience=HANDSHAKE)
    except BaseException as error:
        line.drop(ConnectionError(str(error)))
        raise
    return line


async def _greet(line: Line, address: Address) -> None:
    hello: list[Word] = ["HELLO", 3]
    if address.password is not None or address.user is not None:
        hello += ["AUTH", address.user or "default", address.password or ""]
    try:
        await line.ask(*hello, "SETNAME", "holdfast", patience=HANDSHAKE)
    except Refused as error:
        if error.code == "NOPROTO" or "unknown command" in str(error):
            # Not its own words: they repeat ours, with the password.
            raise ConnectionError("Redis 6 or later, or Valkey, is needed") from None
        raise
    if address.db:
        await line.ask("SELECT", address.db, patience=HANDSHAKE)


async def _find(address: Address, tag: str, turn: int) -> Host:
    match address.kind:
        case Kind.SERVER:
            return address.hosts[turn % len(address.hosts)]
        case Kind.SOCKET:
            return "", 0
        case Kind.SENTINEL:
            return await _ask_around(address, turn, _ask_sentinel)
        case Kind.CLUSTER:

            async def ask(line: Line, asked: Host, address: Address) -> Host:
                return await _ask_node(line, asked, address, slot(tag))

            return await _ask_around(address, turn, ask)


async def _ask_around(
    address: Address, turn: int, ask: Callable[[Line, Host, Address], Awaitable[Host]]
) -> Host:
    """The first answer that can be had from any of the hosts."""
    problem: Exception = ConnectionError("nobody to ask")
    for n in range(len(address.hosts)):
        host = address.hosts[(turn + n) % len(address.hosts)]
        try:
            line = await Line.open(address, host, lambda _: None)
        except OSError as error:
            problem = error
            continue
        try:
            return await ask(line, host, address)
        except (OSError, Refused) as error:
            problem = error
        finally:
            line.drop(ConnectionError("asked"))
    raise problem


async def _ask_sentinel(line: Line, _asked: Host, address: Address) -> Host:
    if address.sentinel_password is not None:
        user = [address.sentinel_user] if address.sentinel_user else []
        await line.ask("AUTH", *user, address.sentinel_password)
    found = await line.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service)
    if not isinstance(found, list):
        raise ConnectionError(f"the sentinels know no service {address.service!r}")
    return _host(found)


async def _ask_node(line: Line, asked: Host, address: Address, wanted: int) -> Host:
    await _greet(line, address)
    slots = await line.ask("CLUSTER", "SLOTS")
    for entry in slots if isinstance(slots, list) else []:
        match entry:
            case [int(first), int(last), list(node), *_] if first <= wanted <= last:
                host, port = _host(node)
                return host or asked[0], port  # no name: where we have asked
    raise ConnectionError(f"no node has slot {wanted}")


def _host(found: Sequence[Reply]) -> Host:
    name, port = found[0], found[1]
    assert isinstance(port, (bytes, int))
    return name.decode() if isinstance(name, bytes) else "", int(port)


def slot(tag: str) -> int:
    """Where a cluster keeps the keys with this hash tag."""
    return binascii.crc_hqx(tag.encode(), 0) % 16_384
