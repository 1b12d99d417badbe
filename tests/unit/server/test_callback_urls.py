"""Callback URLs and signatures, without a network."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress

import pytest

from holdfast.app import Holdfast
from holdfast.builtin.callbacks import RETRY
from holdfast.core.callback import RETRIES
from holdfast.definitions.callbacks import check_callback, is_public
from holdfast.errors import InvalidOption
from holdfast.webhooks.signing import is_signed, sign

PRIVATE = [
    "http://127.0.0.1/x",
    "http://localhost:8420/x",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://[fec0::1]/",
    "http://[3fff::1]/",
    "http://[5f00::1]/",
    "http://[64:ff9b:1::1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[::7f00:1]/",
    "http://[100::1]/",
    "http://[2001:db8::1]/",
    "http://[2001:2::1]/",
    "http://[2001:0:7f00:1:0:0:f5ff:fffe]/",
    "http://[fc00::1]/",
    "http://[fe80::1]/",
    "http://[ff0e::1]/",
    "http://100.64.0.1/",
    "http://192.0.0.8/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://240.0.0.1/",
    "http://printer.local/",
    "http://metadata.google.internal/",
]
BAD = [
    "",
    "ftp://example.org/",
    "//example.org/",
    "https:///path",
    "https://example.org:99999/",
    "https://example.org:0/",
    "https://ann:pw@example.org/",
    "https://example.org/a b",
    "https://example.org/\r\nHost: x",
    "https://exämple.org/",
    "https://example.org/" + "x" * 2000,
    7,
]


@pytest.mark.parametrize("url", PRIVATE)
def test_a_private_address_is_refused_unless_its_host_is_allowed(url: str) -> None:
    with pytest.raises(InvalidOption, match="callback_hosts"):
        check_callback(url)

    host = url.split("//")[1].split("/", maxsplit=1)[0]
    bare = host.strip("[]") if host.startswith("[") else host.split(":")[0]
    assert check_callback(url, {bare}) == url


@pytest.mark.parametrize("url", BAD)
def test_what_is_no_web_address_is_refused(url: object) -> None:
    with pytest.raises(InvalidOption, match=r"^callback: expected"):
        check_callback(url, {"example.org"})


@pytest.mark.parametrize(
    "url", ["https://example.org", "http://8.8.8.8:443/a?b=c#d", "http://[2606:4700::1111]/"]
)
def test_a_public_address_is_taken(url: str) -> None:
    assert check_callback(url) == url


@pytest.mark.parametrize("port", [22, 25, 6379, 8080])
def test_an_unusual_port_is_refused_unless_it_is_allowed(port: int) -> None:
    url = f"https://example.org:{port}/hook"

    with pytest.raises(InvalidOption, match=f"add 'example.org:{port}' to the setting"):
        check_callback(url)
    with pytest.raises(InvalidOption, match="only 80 and 443"):
        check_callback(url, {"example.org:1"})

    assert check_callback(url, {f"example.org:{port}"}) == url
    assert check_callback(url, {"example.org"}) == url


def test_a_bad_callback_is_refused_at_submit() -> None:
    app = Holdfast(url="memory://", callback_secret="s3cret of some length")

    @app.task
    def f() -> None: ...

    with app, pytest.raises(InvalidOption, match="not a public address"):
        f.options(callback="http://127.0.0.1/").submit()


def test_a_callback_that_could_not_be_signed_is_refused_at_submit() -> None:
    app = Holdfast(url="memory://")

    @app.task
    def f() -> None: ...

    with app, pytest.raises(InvalidOption, match="set `callback_secret`"):
        f.options(callback="https://example.org/").submit()


def test_addresses_wrapped_in_others_are_judged_by_what_is_inside() -> None:
    assert not is_public(ipaddress.ip_address("::ffff:10.0.0.1"))
    assert not is_public(ipaddress.ip_address("2001:0:4136:e378:8000:63bf:f5ff:fffe"))
    assert is_public(ipaddress.ip_address("::ffff:8.8.8.8"))
    assert is_public(ipaddress.ip_address("2606:4700::1111"))


def test_a_receiver_can_check_the_signature_with_a_few_lines() -> None:
    body, header = b'{"a":1}', sign(["s3cret"], b'{"a":1}', 1000)

    by_hand = hmac.new(b"s3cret", b"1000." + body, hashlib.sha256).hexdigest()
    assert header == f"t=1000,v1={by_hand}"
    assert is_signed("s3cret", body, header, now=1200)


def test_a_wrong_old_or_malformed_signature_is_not_accepted() -> None:
    body, header = b"{}", sign(["s3cret"], b"{}", 1000)

    assert not is_signed("other", body, header, now=1000)
    assert not is_signed("s3cret", b"{ }", header, now=1000)
    assert not is_signed("s3cret", body, header, now=1301)
    assert not is_signed("s3cret", body, header.replace("1000", "1100"), now=1100)
    for malformed in ("", "t=x,v1=y", "v1=abc", "t=1000"):
        assert not is_signed("s3cret", body, malformed, now=1000)


def test_deliveries_are_tried_for_about_an_hour_and_then_given_up() -> None:
    pauses = [RETRY.delay(n, 0.5) for n in range(1, RETRIES + 1)]

    assert 1200 < sum(pauses) < 2 * 3600


def test_of_several_secrets_each_is_enough() -> None:
    header = sign(["old", "new"], b"{}", 1000)

    checked = [is_signed(secret, b"{}", header, now=1000) for secret in ("old", "new", "other")]
    assert checked == [True, True, False]
