"""What a `redis_url` may say."""

from __future__ import annotations

import ssl

import pytest

from holdfast.dispatch.redis.address import RedisKind, parse
from holdfast.dispatch.redis.locate import slot
from holdfast.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "kind", "hosts", "db"),
    [
        ("redis://h", RedisKind.SERVER, (("h", 6379),), 0),
        ("redis://h:7000/2", RedisKind.SERVER, (("h", 7000),), 2),
        ("redis://[::1]:7000/", RedisKind.SERVER, (("::1", 7000),), 0),
        ("redis://[fe80::1%eth0]", RedisKind.SERVER, (("fe80::1%eth0", 6379),), 0),
        ("redis+sentinel://a,[::1]:1/shop", RedisKind.SENTINEL, (("a", 26379), ("::1", 1)), 0),
        ("redis+sentinel://a,b:1/shop/3", RedisKind.SENTINEL, (("a", 26379), ("b", 1)), 3),
        ("redis+cluster://a:1,b", RedisKind.CLUSTER, (("a", 1), ("b", 6379)), 0),
        ("unix:///run/redis.sock?db=4", RedisKind.SOCKET, (), 4),
    ],
)
def test_servers_sentinels_clusters_and_sockets_are_understood(
    url: str, kind: RedisKind, hosts: object, db: int
) -> None:
    address = parse(url)

    assert (address.kind, address.hosts, address.db) == (kind, hosts, db)
    assert address.tls is None


def test_who_and_which_service_are_read() -> None:
    address = parse("redis+sentinel://me:a%2Fb@h/shop?sentinel_password=x&prefix=p")

    assert (address.user, address.password, address.service) == ("me", "a/b", "shop")
    assert (address.sentinel_password, address.prefix) == ("x", "p")
    assert "a/b" not in f"{address!r} {address}"


def test_a_password_may_stand_alone() -> None:
    address = parse("redis://:secret@h")

    assert (address.user, address.password) == (None, "secret")


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3/cret@h:6379",
        "redis://:s3#cret@h",
        "redis://me:s3?cret@h",
        "redis://:s3cret/@h/0",
        "redis+sentinel://me:s3/cret@a,b/shop",
    ],
)
def test_a_password_that_is_not_escaped_is_told_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(url)

    assert "%2F" in str(refused.value)
    assert "s3" not in str(refused.value)
    assert "cret" not in str(refused.value)


def test_people_read_where_it_is() -> None:
    assert str(parse("redis+cluster://me:pw@[::1]:7,b")) == "[::1]:7,b:6379"


def test_rediss_means_tls_and_certificates_are_checked_unless_told_otherwise() -> None:
    checked, unchecked = parse("rediss://h"), parse("rediss+cluster://h?ssl_cert_reqs=none")

    assert checked.tls is not None
    assert (checked.tls.verify_mode, checked.tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert unchecked.tls is not None
    assert unchecked.tls.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://h", "expected redis://, rediss://"),
        ("h:6379", "expected redis://, rediss://"),
        ("redis://", "expected host[:port], got ''"),
        ("redis://h:x", "expected host[:port], got 'h:x'"),
        ("redis://h:99999", "expected host[:port], got 'h:99999'"),
        ("redis://a,,b", "expected host[:port], got ''"),
        ("redis://h/one", "expected the number of a database, got '/one'"),
        ("redis://h?timeout=3", "unknown option 'timeout'"),
        ("redis://[::1", "expected host[:port], got '[::1'"),
        ("redis://h?prefix={a}", "prefix: expected a name without braces, got '{a}'"),
        ("redis://h?ssl_ca_certs=ca.pem", "ssl_ca_certs is for rediss://"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs: expected none or required, got 'maybe'"),
        ("redis+sentinel://h", "expected the name of the service"),
        ("redis+cluster://h/1", "a cluster has only database 0"),
        ("unix://", "expected the path of a socket"),
        ("rediss://h?ssl_ca_certs=/nowhere.pem", "its certificates cannot be read"),
    ],
)
def test_others_are_refused_with_what_was_expected(url: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(url)

    assert text in str(refused.value)
    assert refused.value.setting == "redis_url"


def test_slots_are_those_of_the_cluster_specification() -> None:
    assert (slot("123456789"), slot("foo")) == (0x31C3, 12182)
