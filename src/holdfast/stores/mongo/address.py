"""Where the store is: `mongodb://user:password@host1,host2/database?schema=holdfast`.

`schema` is ours: the word that the names of our collections begin with. The database is `holdfast`
if the URL names none. Everything else is the driver's (`replicaSet`, `authSource`, `tls` and so
on), but what Holdfast's promises rest on: writes are always acknowledged by a majority and
journaled, and the primary is read.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from holdfast.errors import ConfigError

DEFAULT_SCHEMA: Final = "holdfast"
DEFAULT_DATABASE: Final = "holdfast"
_SCHEMA: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,50}")
_NO_DATABASE: Final = re.compile(r'[/\\. "$*<>:|?\0]')
_SECRETS: Final = frozenset({"tlscertificatekeyfilepassword", "authmechanismproperties"})


class Address(NamedTuple):
    uri: str
    database: str
    schema: str

    @property
    def shown(self) -> str:
        """For people: without secrets."""
        parts = urlsplit(self.uri)
        account, at, place = parts.netloc.rpartition("@")
        query = [(key, value) for key, value in parse_qsl(parts.query) if not _is_secret(key)]
        if self.schema != DEFAULT_SCHEMA:
            query.append(("schema", self.schema))
        netloc = account.partition(":")[0] + at + place
        return urlunsplit((parts.scheme, netloc, f"/{self.database}", urlencode(query), ""))

    @property
    def options(self) -> frozenset[str]:
        """Names of the driver's options that the URL sets, in lower case."""
        return frozenset(key.lower() for key, _ in parse_qsl(urlsplit(self.uri).query))

    def collection(self, noun: str) -> str:
        return f"{self.schema}.{noun}"


def parse(url: str, schema: str | None = None) -> Address:
    """Read a URL; `schema` is used if the URL names none."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    named = dict(query).get("schema")
    rest = urlencode([(key, value) for key, value in query if key != "schema"])
    database = unquote(parts.path.lstrip("/")) or DEFAULT_DATABASE
    if not parts.netloc or _NO_DATABASE.search(database):
        raise ConfigError("url", f"url: expected mongodb://host/database, got a URL for {database}")
    uri = urlunsplit((parts.scheme, parts.netloc, parts.path or "/", rest, ""))
    return Address(uri, database, _schema(named or schema or DEFAULT_SCHEMA))


def _schema(name: str) -> str:
    if not _SCHEMA.fullmatch(name):
        raise ConfigError(
            "url", f"url: expected a schema of letters, digits and underscores, got {name!r}"
        )
    return name


def _is_secret(option: str) -> bool:
    return option.lower() in _SECRETS
