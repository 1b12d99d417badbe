"""Finds the server to talk to, and connects to it.

All keys of a store have one hash tag, so they live on one node, of a cluster as well. So a cluster
or sentinels only answer *where*; from then on it is one server like any other, and when it says
that it no longer is the one (`MOVED`, `READONLY`), or is gone, it is looked for again.
"""

from __future__ import annotations

import binascii
from collections.abc import Awaitable, Callable, Sequence

from holdfast.dispatch.redis.address import Address, Host, RedisKind
from holdfast.dispatch.redis.connection import RedisConnection, Word
from holdfast.dispatch.redis.resp import ErrorReply, Push, Reply

HANDSHAKE = 1.0
"""Seconds for each step until a connection is ready."""


async def connect(
    address: Address, tag: str, *, attempt: int, heard: Callable[[Push], None]
) -> RedisConnection:
    """A connection to the server that has the keys with this hash tag, logged in.

    `attempt` counts the attempts: each asks another one of several hosts first.
    """
    connection = await RedisConnection.open(address, await _find(address, tag, attempt), heard)
    try:
        await _greet(connection, address)
        if not await _is_master(connection):
            raise ConnectionError("it is a replica")
    except BaseException as error:
        connection.drop(ConnectionError(str(error)))
        raise
    return connection


async def _is_master(connection: RedisConnection) -> bool:
    try:
        role = await connection.ask("ROLE", patience=HANDSHAKE)
    except ErrorReply:
        return True  # not for everybody to ask; a replica will refuse to write soon enough
    return isinstance(role, list) and role[:1] == [b"master"]


async def _greet(connection: RedisConnection, address: Address) -> None:
    hello: list[Word] = ["HELLO", 3]
    if address.password is not None or address.user is not None:
        hello += ["AUTH", address.user or "default", address.password or ""]
    try:
        await connection.ask(*hello, "SETNAME", "holdfast", patience=HANDSHAKE)
    except ErrorReply as error:
        if error.code == "NOPROTO" or "unknown command" in str(error):
            # Not its own words: they repeat ours, with the password.
            raise ConnectionError("Redis 6 or later, or Valkey, is needed") from None
        raise
    if address.db:
        await connection.ask("SELECT", address.db, patience=HANDSHAKE)


async def _find(address: Address, tag: str, attempt: int) -> Host:
    match address.kind:
        case RedisKind.SERVER:
            return address.hosts[attempt % len(address.hosts)]
        case RedisKind.SOCKET:
            return "", 0
        case RedisKind.SENTINEL:
            return await _ask_around(address, attempt, _ask_sentinel)
        case RedisKind.CLUSTER:

            async def ask(connection: RedisConnection, asked: Host, address: Address) -> Host:
                return await _ask_node(connection, asked, address, slot(tag))

            return await _ask_around(address, attempt, ask)


async def _ask_around(
    address: Address, attempt: int, ask: Callable[[RedisConnection, Host, Address], Awaitable[Host]]
) -> Host:
    """The first answer that can be had from any of the hosts."""
    problem: Exception = ConnectionError("nobody to ask")
    for n in range(len(address.hosts)):
        host = address.hosts[(attempt + n) % len(address.hosts)]
        try:
            connection = await RedisConnection.open(address, host, lambda _: None)
        except OSError as error:
            problem = error
            continue
        try:
            return await ask(connection, host, address)
        except (OSError, ErrorReply) as error:
            problem = error
        finally:
            connection.drop(ConnectionError("asked"))
    raise problem


async def _ask_sentinel(connection: RedisConnection, _asked: Host, address: Address) -> Host:
    if address.sentinel_password is not None:
        user = [address.sentinel_user] if address.sentinel_user else []
        await connection.ask("AUTH", *user, address.sentinel_password)
    found = await connection.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service)
    if not isinstance(found, list):
        raise ConnectionError(f"the sentinels know no service {address.service!r}")
    return _host(found)


async def _ask_node(
    connection: RedisConnection, asked: Host, address: Address, wanted: int
) -> Host:
    await _greet(connection, address)
    slots = await connection.ask("CLUSTER", "SLOTS")
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
