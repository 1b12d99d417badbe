"""What a mongodb:// URL says: to us, to the driver, and to people."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError
from holdfast.stores.mongo.address import parse
from holdfast.stores.mongo.connections import client_of


def test_database_and_schema_have_defaults() -> None:
    address = parse("mongodb://host")

    assert (address.database, address.schema) == ("holdfast", "holdfast")
    assert address.collection("tasks") == "holdfast.tasks"


def test_the_schema_is_ours_and_the_rest_is_the_drivers() -> None:
    address = parse("mongodb://h1:1,h2:2/shop?replicaSet=rs0&schema=jobs&tls=true")

    assert (address.database, address.schema) == ("shop", "jobs")
    assert address.uri == "mongodb://h1:1,h2:2/shop?replicaSet=rs0&tls=true"
    assert address.options == {"replicaset", "tls"}


def test_the_url_for_people_has_no_secrets() -> None:
    url = "mongodb+srv://me:word@host/?schema=jobs&tlsCertificateKeyFilePassword=key&appname=x"

    assert parse(url).shown == "mongodb+srv://me@host/holdfast?appname=x&schema=jobs"


@pytest.mark.parametrize(
    "url", ["mongodb:///db", "mongodb://host/a.b", "mongodb://host/a$b", "mongodb://h/x?schema=a.b"]
)
def test_what_cannot_be_a_place_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^url: expected"):
        parse(url)


@pytest.mark.parametrize(
    "url", ["mongodb://h:notaport/db", "mongodb://a:b:c@h/db", "mongodb://h:1:2/db"]
)
def test_what_the_driver_does_not_understand_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^url: "):
        client_of(parse(url))
