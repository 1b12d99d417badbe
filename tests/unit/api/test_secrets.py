"""Secret parameters: the handler gets them, nobody else sees them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pydantic import BaseModel, SecretBytes, SecretStr

from holdfast.app import Holdfast
from holdfast.codec import secrets
from holdfast.core.shown import masked
from holdfast.errors import InvalidArguments, InvalidOption

STARS = "**********"


class Card(BaseModel):
    holder: str
    number: SecretStr


@pytest.fixture
def app() -> Holdfast:
    return Holdfast(url="memory://")


def test_the_handler_gets_the_secret_and_a_reader_gets_stars(app: Holdfast) -> None:
    @app.task
    def login(user: str, password: SecretStr) -> None: ...

    payload = login.call("ann", SecretStr("hunter2")).payload

    assert login.load(payload)[1]["password"].get_secret_value() == "hunter2"
    assert login.masked(payload) == {"user": "ann", "password": STARS}


def test_a_reader_without_the_definition_gets_stars_too(app: Holdfast) -> None:
    @app.task(secret_fields=["pin"])
    def pay(cards: list[Card], pin: str) -> None: ...

    cards = [Card(holder="ann", number=SecretStr("4111")), Card(holder="bob", number=SecretStr(""))]
    payload = pay.call(cards, "1234").payload

    shown = masked(payload)

    assert shown == {
        "cards": [{"holder": "ann", "number": STARS}, {"holder": "bob", "number": ""}],
        "pin": STARS,
    }
    assert b"4111" in secrets.revealed(payload)
    assert b"$secret" not in secrets.revealed(payload)


def test_a_field_deep_inside_can_be_secret_by_name(app: Holdfast) -> None:
    @app.task(secret_fields="hooks.token")
    def call(hooks: list[dict[str, str]], n: int = 1) -> None: ...

    payload = call.call([{"url": "a", "token": "t1"}, {"url": "b"}, {"token": "t3"}]).payload

    expected = {"hooks": [{"url": "a", "token": STARS}, {"url": "b"}, {"token": STARS}]}
    assert call.masked(payload) == expected
    assert masked(payload) == expected
    assert call.load(payload)[1]["hooks"][0]["token"] == "t1"


def test_secret_bytes_and_a_secret_that_is_left_out_work(app: Holdfast) -> None:
    @app.task
    def sign(key: SecretBytes, more: SecretStr | None = None) -> None: ...

    payload = sign.call(SecretBytes(b"\xff\x00")).payload

    assert sign.load(payload)[1]["key"].get_secret_value() == b"\xff\x00"
    assert sign.masked(payload) == {"key": STARS}


def test_json_arguments_become_secrets_as_well(app: Holdfast) -> None:
    @app.task(name="login")
    def login(password: SecretStr) -> None: ...

    payload = login.options().call_json({"password": "hunter2"}).payload

    assert masked(payload) == {"password": STARS}


def test_an_ordinary_payload_is_stored_and_shown_as_before(app: Holdfast) -> None:
    @app.task
    def add(a: int, b: dict[str, Any]) -> None: ...

    payload = add.call(1, {"$secret": [["a"]]}).payload

    assert orjson.loads(payload) == {"a": 1, "b": {"$secret": [["a"]]}}
    assert add.masked(payload) == {"a": 1, "b": {"$secret": [["a"]]}}
    assert masked(payload) == {"a": 1, "b": {"$secret": [["a"]]}}


def test_a_task_that_lost_its_secrets_in_a_deploy_still_runs(app: Holdfast) -> None:
    @app.task(secret_fields=["pin"], name="before")
    def before(pin: str) -> None: ...

    @app.task(name="after")
    def after(pin: str) -> None: ...

    payload = before.call("1234").payload

    assert after.load(payload) == ((), {"pin": "1234"})
    assert after.masked(payload) == {"pin": STARS}


def test_a_payload_that_no_longer_fits_shows_its_names_only(app: Holdfast) -> None:
    @app.task
    def login(user: str, password: SecretStr) -> None: ...

    assert login.masked(b'{"user": 1, "pass": "hunter2"}') == {"user": STARS, "pass": STARS}


def test_a_refused_secret_is_not_repeated_in_the_error(app: Holdfast) -> None:
    @app.task(secret_fields=["pin"])
    def pay(pin: int, card: Card, amount: int) -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        pay.options().call_json(
            {"pin": "s3cret", "card": {"holder": 5, "number": 4111}, "amount": "much"}
        )

    assert "s3cret" not in str(caught.value)
    assert "4111" not in str(caught.value)
    assert "got 'much'" in str(caught.value)


def test_two_secrets_are_two_bodies_to_an_idempotency_key(app: Holdfast) -> None:
    @app.task
    def login(password: SecretStr) -> None: ...

    one = login.options(idempotency_key="k").call(SecretStr("a"))
    other = login.options(idempotency_key="k").call(SecretStr("b"))

    assert one.fingerprint != other.fingerprint


def test_a_secret_field_that_is_no_parameter_is_refused_where_it_is_written(app: Holdfast) -> None:
    with pytest.raises(InvalidOption, match="Did you mean 'password'"):

        @app.task(secret_fields=["pasword"])
        def login(password: str) -> None: ...
