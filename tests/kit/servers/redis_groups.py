"""Several Redis servers that belong together: a watched master with replicas, or a cluster.

with Sentinels() as group:              # three servers, three sentinels
    url = group.url                     # redis+sentinel://…/shop
    group.master.kill9()                # they agree on another one within two seconds

with Cluster() as group:                # three masters
    url = group.url                     # redis+cluster://…
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Self

from tests.kit.servers.account import ServerError
from tests.kit.servers.postgres import free_port
from tests.kit.servers.redis import RedisServer

PATIENCE = 30.0
SENTINEL = """
sentinel monitor shop 127.0.0.1 {port} 2
sentinel down-after-milliseconds shop 600
sentinel failover-timeout shop 2000
sentinel parallel-syncs shop 2
"""
IMPATIENT = ("info-period", 500, "publish-period", 200)
"""Milliseconds after which sentinels look for servers, and for each other; else 10 s and 2 s."""


class _Group:
    def __init__(self) -> None:
        self._stack = ExitStack()

    def _start(self, server: RedisServer) -> RedisServer:
        return self._stack.enter_context(server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class Sentinels(_Group):
    """A master, two replicas, and three sentinels of which two must agree."""

    def __init__(self) -> None:
        super().__init__()
        at_once = ["--repl-diskless-sync-delay", "0"]
        first = self._start(RedisServer(None, *at_once))
        following = ["--replicaof", "127.0.0.1", str(first.port), *at_once]
        self.servers = [first, *(self._start(RedisServer(None, *following)) for _ in range(2))]
        _until(self._is_followed)
        config = SENTINEL.format(port=first.port)
        self.sentinels = [
            self._start(RedisServer(None, "--sentinel", config=config)) for _ in range(3)
        ]
        for sentinel in self.sentinels:
            with suppress(ServerError):  # Redis 6 takes its time
                sentinel.command("SENTINEL", "DEBUG", *IMPATIENT)
        _until(self._knows_all)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{hosts}/shop"

    @property
    def master(self) -> RedisServer:
        """Whom the sentinels name now."""
        found = self.sentinels[0].command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop")
        assert isinstance(found, list)
        return next(server for server in self.servers if str(server.port) == found[1])

    def _knows_all(self) -> bool:
        for sentinel in self.sentinels:
            found = sentinel.command("SENTINEL", "MASTER", "shop")
            assert isinstance(found, list)
            facts = dict(zip(map(str, found[::2]), map(str, found[1::2]), strict=True))
            if (facts["num-slaves"], facts["num-other-sentinels"]) != ("2", "2"):
                return False
        return True

    def _is_followed(self) -> bool:
        replicas = str(self.servers[0].command("INFO", "replication"))
        return replicas.count("state=online") == 2


class Cluster(_Group):
    """Three masters, each with a third of the slots."""

    def __init__(self) -> None:
        super().__init__()
        self._buses = [free_port() for _ in range(3)]
        self.servers = [self._start(RedisServer(None, *_in_cluster(bus))) for bus in self._buses]
        first = self.servers[0]
        for server, slots in zip(
            self.servers, [(0, 5460), (5461, 10922), (10923, 16383)], strict=True
        ):
            server.command("CLUSTER", "ADDSLOTSRANGE", *slots)
        for server, bus in list(zip(self.servers, self._buses, strict=True))[1:]:
            first.command("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
        _until(self._is_whole)

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{each.port}" for each in self.servers)

    def owner(self, slot: int) -> RedisServer:
        """Who has this slot now."""
        slots = self.servers[0].command("CLUSTER", "SLOTS")
        assert isinstance(slots, list)
        for entry in slots:
            match entry:
                case [int(first), int(last), [_, port, *_], *_] if first <= slot <= last:
                    return next(server for server in self.servers if server.port == port)
        raise ServerError(f"nobody has slot {slot}")

    def move(self, slot: int, to: RedisServer) -> None:
        """Give an empty slot to another master."""
        node = str(to.command("CLUSTER", "MYID"))
        for server in (to, *(each for each in self.servers if each is not to)):
            server.command("CLUSTER", "SETSLOT", slot, "NODE", node)

    def _is_whole(self) -> bool:
        infos = (str(server.command("CLUSTER", "INFO")) for server in self.servers)
        return all("cluster_state:ok" in info and "known_nodes:3" in info for info in infos)


def _in_cluster(bus: int) -> tuple[str, ...]:
    return (
        "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
        "--cluster-node-timeout", "2000", "--cluster-port", str(bus),
    )  # fmt: skip


def _until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        if time.monotonic() > deadline:
            raise ServerError("these Redis servers did not find each other")
        time.sleep(0.05)
