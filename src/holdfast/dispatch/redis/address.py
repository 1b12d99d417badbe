"""Where Redis is: one server, the master that sentinels name, or a node of a cluster.

    redis://[user:password@]host[:6379][/db]
    unix:///run/redis.sock[?db=1]
    redis+sentinel://[user:password@]host[:26379],host,host/service[/db]
    redis+cluster://[user:password@]host[:6379],host,host

`rediss` in place of `redis` means TLS, with `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile` and
`ssl_cert_reqs=none` as in other Python clients. `prefix` names the store's keys, `sentinel_user`
and `sentinel_password` are those of the sentinels.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.errors import ConfigError

Host = tuple[str, int]


class Kind(Enum):
    """What stands at the address."""

    SERVER = "server"
    SOCKET = "socket"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


_SCHEMES: Final = {
    "redis": Kind.SERVER,
    "unix": Kind.SOCKET,
    "redis+sentinel": Kind.SENTINEL,
    "redis+cluster": Kind.CLUSTER,
}
_TLS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")
_OPTIONS: Final = ("prefix", "db", "sentinel_user", "sentinel_password", *_TLS)
_HOST = re.compile(r"^(\[[0-9a-fA-F:.%]+\]|[^:\[\]/]+)(?::(\d{1,5}))?$")


@dataclass(frozen=True, kw_only=True)
class Address:
    """A `redis_url`, understood."""

    kind: Kind
    hosts: tuple[Host, ...] = ()
    path: str = ""
    service: str = ""
    db: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    sentinel_user: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    prefix: str | None = None
    tls: ssl.SSLContext | None = None

    def __str__(self) -> str:
        """For people; without the password."""
        if self.kind is Kind.SOCKET:
            return self.path
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def parse(url: str) -> Address:
    """Read a `redis_url`. ConfigError says what is wrong with it."""
    parts = urlsplit(url)
    scheme, secure = parts.scheme, parts.scheme.startswith("rediss")
    if secure:
        scheme = "redis" + scheme.removeprefix("rediss")
    kind = _SCHEMES.get(scheme)
    if kind is None:
        raise _wrong(
            "expected redis://, rediss://, redis+sentinel://, redis+cluster:// or unix://, "
            f"got {parts.scheme or url.partition(':')[0]}://…"
        )
    options = _options(parts.query)
    access, _, hosts = parts.netloc.rpartition("@")
    user, _, password = access.partition(":")
    path = unquote(parts.path)
    service, db = _path(kind, path, options)
    return Address(
        kind=kind,
        hosts=() if kind is Kind.SOCKET else _hosts(hosts, 26379 if service else 6379),
        path=path if kind is Kind.SOCKET else "",
        service=service,
        db=db,
        user=unquote(user) or None,
        password=unquote(password) or None,
        sentinel_user=options.get("sentinel_user"),
        sentinel_password=options.get("sentinel_password"),
        prefix=options.get("prefix"),
        tls=_tls(options) if secure else None,
    )


def _options(query: str) -> Mapping[str, str]:
    options = dict(parse_qsl(query))
    for name in options:
        if name not in _OPTIONS:
            raise _wrong(f"unknown option {name!r}; there are {', '.join(_OPTIONS)}")
    return options


def _hosts(text: str, default: int) -> tuple[Host, ...]:
    hosts = []
    for part in text.split(","):
        found = _HOST.match(part)
        if found is None or int(found[2] or default) > 65_535:
            raise _wrong(f"expected host[:port], got {part!r}")
        hosts.append((found[1].strip("[]"), int(found[2] or default)))
    return tuple(hosts)


def _path(kind: Kind, path: str, options: Mapping[str, str]) -> tuple[str, int]:
    """The sentinels' service, and the number of the database."""
    service, db = "", options.get("db", "0")
    words = [word for word in path.split("/") if word]
    if kind is Kind.SENTINEL:
        if not words:
            raise _wrong("expected the name of the service: redis+sentinel://host,host/service")
        service, *words = words
    if kind is Kind.SOCKET:
        if not words:
            raise _wrong("expected the path of a socket: unix:///run/redis.sock")
        words = []
    if words:
        db, *words = words
    if words or not db.isdigit():
        raise _wrong(f"expected the number of a database, got {path!r}")
    if kind is Kind.CLUSTER and db != "0":
        raise _wrong("a cluster has only database 0")
    return service, int(db)


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
        if "ssl_certfile" in options:
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"))
    except OSError as error:
        raise _wrong(f"its certificates cannot be read: {error}") from error
    if options.get("ssl_cert_reqs") == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _wrong(text: str) -> ConfigError:
    return ConfigError("redis_url", f"redis_url: {text}")
