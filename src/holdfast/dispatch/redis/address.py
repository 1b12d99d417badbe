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
from urllib.parse import parse_qsl, unquote

from holdfast.errors import ConfigError

Host = tuple[str, int]


class RedisKind(Enum):
    """What stands at the address."""

    SERVER = "server"
    SOCKET = "socket"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


_SCHEMES: Final = {
    "redis": RedisKind.SERVER,
    "unix": RedisKind.SOCKET,
    "redis+sentinel": RedisKind.SENTINEL,
    "redis+cluster": RedisKind.CLUSTER,
}
_TLS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")
_OPTIONS: Final = ("prefix", "db", "sentinel_user", "sentinel_password", *_TLS)
_URL = re.compile(r"([a-z+]+)://([^/?#]*)([^?#]*)\??([^#]*)(.*)", re.DOTALL | re.IGNORECASE)
"""Not `urlsplit`, which knows of one host only."""
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\]|[^:\[\]/]+)(?::(\d{1,5}))?")
_ESCAPE: Final = "in a user or password write %2F for /, %3F for ?, %23 for # and %40 for @"


@dataclass(frozen=True, kw_only=True)
class Address:
    """A `redis_url`, understood."""

    kind: RedisKind
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
        if self.kind is RedisKind.SOCKET:
            return self.path
        hosts = ((f"[{host}]" if ":" in host else host, port) for host, port in self.hosts)
        return ",".join(f"{host}:{port}" for host, port in hosts)


def parse(url: str) -> Address:
    """Read a `redis_url`. ConfigError says what is wrong with it."""
    found = _URL.fullmatch(url)
    scheme, place, path, query, rest = found.groups() if found else ("", "", "", "", "")
    scheme, secure = scheme.lower(), scheme.lower().startswith("rediss")
    if secure:
        scheme = "redis" + scheme.removeprefix("rediss")
    kind = _SCHEMES.get(scheme)
    if kind is None:
        raise _wrong(
            "expected redis://, rediss://, redis+sentinel://, redis+cluster:// or unix://, "
            f"got {url.partition(':')[0]}://…"
        )
    access, _, hosts = place.rpartition("@")
    if rest or (kind is not RedisKind.SOCKET and "@" in path) or ("@" in query and not _are(hosts)):
        raise _wrong(_ESCAPE)  # and show nothing: it may be half a password
    options = _options(query, secure=secure)
    user, _, password = access.partition(":")
    path = unquote(path)
    service, db = _path(kind, path, options)
    return Address(
        kind=kind,
        hosts=() if kind is RedisKind.SOCKET else _hosts(hosts, 26379 if service else 6379),
        path=path if kind is RedisKind.SOCKET else "",
        service=service,
        db=db,
        user=unquote(user) or None,
        password=unquote(password) or None,
        sentinel_user=options.get("sentinel_user"),
        sentinel_password=options.get("sentinel_password"),
        prefix=options.get("prefix"),
        tls=_tls(options) if secure else None,
    )


def _options(query: str, *, secure: bool) -> Mapping[str, str]:
    options = dict(parse_qsl(query))
    for name, value in options.items():
        if name not in _OPTIONS:
            raise _wrong(f"unknown option {name!r}; there are {', '.join(_OPTIONS)}")
        if name in _TLS and not secure:
            raise _wrong(f"{name} is for rediss://; without that nothing is encrypted")
        if name == "ssl_cert_reqs" and value not in ("none", "required"):
            raise _wrong(f"ssl_cert_reqs: expected none or required, got {value!r}")
        if name == "prefix" and not {"{", "}"}.isdisjoint(value):
            raise _wrong(f"prefix: expected a name without braces, got {value!r}")
    return options


def _are(hosts: str) -> bool:
    return all(_HOST.fullmatch(part) for part in hosts.split(","))


def _hosts(text: str, default: int) -> tuple[Host, ...]:
    hosts = []
    for part in text.split(","):
        found = _HOST.fullmatch(part)
        if found is None or int(found[2] or default) > 65_535:
            raise _wrong(f"expected host[:port], got {part!r}")
        hosts.append((found[1].strip("[]"), int(found[2] or default)))
    return tuple(hosts)


def _path(kind: RedisKind, path: str, options: Mapping[str, str]) -> tuple[str, int]:
    """The sentinels' service, and the number of the database."""
    service, db = "", options.get("db", "0")
    words = [word for word in path.split("/") if word]
    if kind is RedisKind.SENTINEL:
        if not words:
            raise _wrong("expected the name of the service: redis+sentinel://host,host/service")
        service, *words = words
    if kind is RedisKind.SOCKET:
        if not words:
            raise _wrong("expected the path of a socket: unix:///run/redis.sock")
        words = []
    if words:
        db, *words = words
    if words or not db.isdigit():
        raise _wrong(f"expected the number of a database, got {path!r}")
    if kind is RedisKind.CLUSTER and db != "0":
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
