"""Where the store is: `postgresql://user:password@host:5432/db?schema=holdfast&pgbouncer=true`.

`schema` and `pgbouncer` are ours; everything else is the driver's (`sslmode`, `host=/socket/folder`
and so on). With `pgbouncer=true` no prepared statement outlives its use, as pooling by transaction
demands.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from holdfast.errors import ConfigError
from holdfast.stores.postgres.queries import DEFAULT_SCHEMA

_YES: Final = frozenset({"true", "1", "yes", "on"})
_NO: Final = frozenset({"false", "0", "no", "off"})
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,50}")
_SECRETS: Final = frozenset({"password", "sslpassword"})


class Address(NamedTuple):
    dsn: str
    schema: str
    pgbouncer: bool

    @property
    def shown(self) -> str:
        """For people: without the password."""
        parts = urlsplit(self.dsn)
        account, at, place = parts.netloc.rpartition("@")
        query = [(key, value) for key, value in parse_qsl(parts.query) if key not in _SECRETS]
        if self.schema != DEFAULT_SCHEMA:
            query.append(("schema", self.schema))
        netloc = account.partition(":")[0] + at + place
        return urlunsplit(("postgresql", netloc, parts.path, urlencode(query), ""))


def parse(url: str, schema: str | None = None) -> Address:
    """Read a URL; `schema` is used if the URL names none."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    ours = {key: value for key, value in query if key in ("schema", "pgbouncer")}
    rest = [(key, value) for key, value in query if key not in ours]
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(rest), ""))
    return Address(
        dsn, _schema(ours.get("schema") or schema or DEFAULT_SCHEMA), _flag(ours.get("pgbouncer"))
    )


def _schema(name: str) -> str:
    name = unquote(name)
    if not _SCHEMA.fullmatch(name):
        raise ConfigError(
            "url", f"url: expected a schema of letters, digits and underscores, got {name!r}"
        )
    return name


def _flag(value: str | None) -> bool:
    word = "no" if value is None else value.lower()
    if word not in _YES | _NO:
        raise ConfigError("url", f"url: expected pgbouncer=true or pgbouncer=false, got {value!r}")
    return word in _YES
