"""Pushes to a real HTTP server that speaks FCM, and to one that decrypts as a browser does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from tests.integration.delivery.conftest import MakeApp
from tests.kit.receivers import Browser, Fcm, running, unpadded
from tests.kit.runs import fire

from holdfast import Holdfast, State
from holdfast.core import delivery as deliveries
from holdfast.errors import InvalidOption

VAPID = unpadded(bytes(range(1, 33)))


@pytest.fixture
def fcm() -> Iterator[Fcm]:
    with running(Fcm()) as one:
        yield one


@pytest.fixture
def browser() -> Iterator[Browser]:
    with running(Browser()) as one:
        yield one


@pytest.fixture
async def app(make_app: MakeApp, fcm: Fcm) -> Holdfast:
    return await make_app(
        fcm_credentials=fcm.credentials,
        fcm_url=fcm.url,
        vapid_private_key=VAPID,
        vapid_subject="mailto:ops@example.com",
    )


async def test_every_device_is_told_with_one_access_token(app: Holdfast, fcm: Fcm) -> None:
    await app.recipients.put_async("ann", devices=["phone", "tablet"])
    run = await fire(app, app.registry["write"].call("It rains.\n" + "x" * 5000), "push")

    await app.run_worker(burst=True)

    assert sorted(each["token"] for each in fcm.pushed) == ["phone", "tablet"]
    delivery = await run.delivery("push")
    assert delivery.state is State.COMPLETED
    first = fcm.pushed[0]
    assert first["notification"]["title"] == "News"
    assert first["notification"]["body"].startswith("It rains.\nxxx")
    assert len(first["notification"]["body"]) == 600
    assert first["data"]["delivery"] == delivery.id
    tag = delivery.id.replace("-", "")
    assert first["android"] == {"collapse_key": tag, "notification": {"tag": tag}}
    assert first["apns"]["headers"]["apns-collapse-id"] == tag


async def test_a_device_that_is_gone_is_taken_off_and_the_others_are_told(
    app: Holdfast, fcm: Fcm
) -> None:
    await app.recipients.put_async("ann", devices=["old", "phone"])
    fcm.problems["old"] = (404, "UNREGISTERED")
    run = await fire(app, app.registry["write"].call("x"), "push")

    await app.run_worker(burst=True)

    assert (await run.delivery("push")).state is State.COMPLETED
    kept = await app.recipients.get_async("ann")
    assert kept is not None
    assert kept.devices == ("phone",)


async def test_the_last_device_being_gone_is_said_in_the_error(app: Holdfast, fcm: Fcm) -> None:
    await app.recipients.put_async("ann", devices=["old"])
    fcm.problems["old"] = (404, "UNREGISTERED")
    run = await fire(app, app.registry["write"].call("x"), "push")

    await app.run_worker(burst=True)

    delivery = await run.delivery("push")
    assert delivery.state is State.FAILED
    assert delivery.error is not None
    assert "UNREGISTERED" in delivery.error.message


async def test_only_those_who_have_not_had_it_are_tried_again(
    app: Holdfast, fcm: Fcm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "RETRIES", 1)
    await app.recipients.put_async("ann", devices=["phone", "busy"])
    fcm.problems["busy"] = (503, "UNAVAILABLE")
    run = await fire(app, app.registry["write"].call("x"), "push")
    await app.run_worker(burst=True)
    assert (await run.delivery("push")).state is State.DEAD_LETTER

    fcm.problems.clear()
    await app.replay_async(name="holdfast.deliver")
    await app.run_worker(burst=True)

    assert (await run.delivery("push")).state is State.COMPLETED
    assert [each["token"] for each in fcm.pushed] == ["phone", "busy"]


async def test_a_revoked_access_token_is_replaced(app: Holdfast, fcm: Fcm) -> None:
    fcm.revoked.add("ya29.1")
    await app.recipients.put_async("ann", devices=["phone"])
    run = await fire(app, app.registry["write"].call("x"), "push")

    await app.run_worker(burst=True)

    delivery = await run.delivery("push")
    assert (delivery.state, delivery.attempt, fcm.tokens_made) == (State.COMPLETED, 2, 2)


async def test_a_message_that_fcm_refuses_is_final(app: Holdfast, fcm: Fcm) -> None:
    fcm.problems["phone"] = (400, "INVALID_ARGUMENT")
    await app.recipients.put_async("ann", devices=["phone"])
    run = await fire(app, app.registry["write"].call("x"), "push")

    await app.run_worker(burst=True)

    delivery = await run.delivery("push")
    assert (delivery.state, delivery.attempt) == (State.FAILED, 1)
    kept = await app.recipients.get_async("ann")
    assert kept is not None
    assert kept.devices == ("phone",)


async def test_a_browser_can_decrypt_what_it_is_pushed_and_knows_who_sent_it(
    app: Holdfast, browser: Browser
) -> None:
    await app.recipients.put_async("ann", web_push=[browser.subscription])
    run = await fire(app, app.registry["write"].call("Grüße 😀"), "web_push")

    await app.run_worker(burst=True)

    delivery = await run.delivery("web_push")
    assert (delivery.state, delivery.error) == (State.COMPLETED, None)
    (shown,) = browser.shown
    assert (shown["title"], shown["body"], shown["delivery"]) == ("News", "Grüße 😀", delivery.id)
    headers = browser.got[0].headers
    assert headers["Topic"] == delivery.id.replace("-", "")
    assert headers["Content-Encoding"] == "aes128gcm"
    (claims,) = browser.claims
    parts = urlsplit(browser.url)
    assert claims["aud"] == f"http://{parts.netloc}"
    assert claims["sub"] == "mailto:ops@example.com"
    assert 0 < claims["exp"] - time.time() <= 24 * 3600


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_has_unsubscribed_is_taken_off(
    app: Holdfast, browser: Browser, status: int
) -> None:
    await app.recipients.put_async("ann", web_push=[browser.subscription])
    browser.statuses = [status]
    run = await fire(app, app.registry["write"].call("x"), "web_push")

    await app.run_worker(burst=True)

    assert (await run.delivery("web_push")).state is State.FAILED
    kept = await app.recipients.get_async("ann")
    assert kept is not None
    assert kept.web_push == ()


async def test_a_push_service_that_is_down_is_tried_again_with_the_same_topic(
    app: Holdfast, browser: Browser
) -> None:
    await app.recipients.put_async("ann", web_push=[browser.subscription])
    browser.statuses = [503, 429]
    await fire(app, app.registry["write"].call("x"), "web_push")

    await app.run_worker(burst=True)

    assert len(browser.shown) == 1
    assert len({request.headers["Topic"] for request in browser.got}) == 1
    assert len(browser.got) == 3


async def test_a_long_message_fits_into_a_push(app: Holdfast, browser: Browser) -> None:
    await app.recipients.put_async("ann", web_push=[browser.subscription])
    await fire(app, app.registry["write"].call("😀" * 5000), "web_push", title="ü" * 190)

    await app.run_worker(burst=True)

    assert len(browser.shown) == 1
    assert len(browser.got[0].body) <= 4096


async def test_an_endpoint_inside_the_network_is_refused_and_nothing_is_stored(
    app: Holdfast, browser: Browser
) -> None:
    inside = {**browser.subscription, "endpoint": "https://10.0.0.7/push"}

    with pytest.raises(InvalidOption, match=r"web_push\[0\].endpoint: '10.0.0.7' is not a public"):
        await app.recipients.put_async("ann", web_push=[inside])

    assert await app.recipients.get_async("ann") is None
