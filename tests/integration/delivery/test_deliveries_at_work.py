"""Deliveries with workers at work: on every store, by webhook, inbox and channels of one's own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.delivery.conftest import SECRET, MakeApp
from tests.kit.receivers import Receiver, running
from tests.kit.runs import fire

from holdfast import Fatal, Holdfast, State
from holdfast.core import delivery as deliveries
from holdfast.core.recipient import Recipient
from holdfast.core.record import Changes
from holdfast.core.task import Priority
from holdfast.definitions.new_tasks import IdMaker
from holdfast.delivery import delivering
from holdfast.errors import InvalidOption
from holdfast.ports.channel import AddressGone, Message
from holdfast.schedules.deliveries import notice_tasks
from holdfast.testing.eventually import eventually
from holdfast.webhooks.signing import is_signed, secret_of_owner


@pytest.fixture(params=["memory", "sqlite", "postgres", "mongo"])
def every_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return sqlite_url
        case "postgres":
            return str(request.getfixturevalue("fresh_schema"))
        case _:
            return str(request.getfixturevalue("fresh_mongo"))


@pytest.fixture
async def app(make_app: MakeApp) -> Holdfast:
    return await make_app()


@pytest.fixture
async def at_work(app: Holdfast) -> AsyncIterator[None]:
    """A worker of the app, and what it runs beside."""
    worker = app.worker(poll="50ms")
    running_ = asyncio.ensure_future(worker.run())
    yield
    worker.stop()
    await running_


async def test_a_run_is_delivered_by_each_of_its_channels_on_every_store(
    make_app: MakeApp, every_url: str, receiver: Receiver
) -> None:
    app = await make_app(url=every_url)
    await app.recipients.put_async("ann", webhook_url=f"{receiver.url}/hook")
    run = await fire(app, app.registry["write"].call({"content": "It rains."}), "webhook", "inbox")
    assert (await run.delivery("webhook")).state is State.BLOCKED

    await app.run_worker(burst=True)

    assert {(await run.delivery(channel)).state for channel in run.channels} == {State.COMPLETED}
    (request,) = receiver.got
    said = json.loads(request.body)
    assert (said["content"], said["owner"], said["execution"]) == ("It rains.", "ann", run.id)
    assert request.headers["Holdfast-Delivery"] == (await run.delivery("webhook")).id
    signature = request.headers["Holdfast-Signature"]
    for secret, holds in ((secret_of_owner("ann", SECRET), True), (SECRET, True), ("x", False)):
        assert is_signed(secret, request.body, signature, now=time.time()) is holds
    (item,) = (await app.inbox.list_async("ann")).items
    assert (item.title, item.content, item.execution) == ("News", "It rains.", run.id)


@pytest.mark.usefixtures("at_work")
async def test_a_worker_delivers_as_soon_as_there_is_something_to_deliver(app: Holdfast) -> None:
    run = await fire(app, app.registry["write"].call("x"), "inbox")

    async def arrived() -> bool:
        return (await run.delivery("inbox")).state is State.COMPLETED

    await eventually(arrived, within=20)
    kinds = [worker.kind for worker in await app.client.store.workers()]
    assert sorted(kinds) == ["python", "server"]
    assert [worker.kind for worker in await app.workers_async()] == ["python"]


async def test_a_receiver_that_fails_is_tried_again_with_the_same_id(
    app: Holdfast, receiver: Receiver
) -> None:
    await app.recipients.put_async("ann", webhook_url=receiver.url)
    receiver.statuses = [500, 302, 429]
    run = await fire(app, app.registry["write"].call("x"), "webhook")

    await app.run_worker(burst=True)

    delivery = await run.delivery("webhook")
    assert (delivery.state, delivery.attempt) == (State.COMPLETED, 4)
    assert {each.headers["Holdfast-Delivery"] for each in receiver.got} == {delivery.id}


async def test_a_receiver_that_is_gone_is_not_asked_again(
    app: Holdfast, receiver: Receiver
) -> None:
    await app.recipients.put_async("ann", webhook_url=receiver.url)
    receiver.statuses = [410]
    run = await fire(app, app.registry["write"].call("x"), "webhook")

    await app.run_worker(burst=True)

    delivery = await run.delivery("webhook")
    assert (delivery.state, len(receiver.got)) == (State.FAILED, 1)


async def test_one_channel_that_fails_leaves_the_others_alone(
    app: Holdfast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "RETRIES", 1)
    await app.recipients.put_async("ann", webhook_url=receiver.url)
    receiver.statuses = [500, 500]
    run = await fire(app, app.registry["write"].call("x"), "webhook", "inbox")

    await app.run_worker(burst=True)

    assert (await run.delivery("webhook")).state is State.DEAD_LETTER
    assert (await run.delivery("inbox")).state is State.COMPLETED
    assert (await app.get_async(run.id)).state is State.COMPLETED


async def test_a_run_that_is_started_again_is_delivered_again(app: Holdfast) -> None:
    run = await fire(app, app.registry["write"].call("x"), "inbox", delivery_title="Again")
    await app.run_worker(burst=True)

    for _ in range(2):
        await app.retry_async(run.id)
        await app.run_worker(burst=True)

    items = (await app.inbox.list_async("ann")).items
    assert [(item.number, item.title, item.execution) for item in items] == [
        (number, "Again", run.id) for number in (3, 2, 1)
    ]


@pytest.fixture
def slow() -> Iterator[Receiver]:
    with running(Receiver()) as one:
        one.delay = 3.0
        yield one


@pytest.mark.usefixtures("at_work")
async def test_the_slow_receiver_of_one_owner_does_not_delay_anothers(
    app: Holdfast, slow: Receiver, receiver: Receiver
) -> None:
    await app.recipients.put_async("ann", webhook_url=slow.url)
    await app.recipients.put_async("bob", webhook_url=receiver.url)
    call = app.registry["write"].call("x")
    for _ in range(20):
        await fire(app, call, "webhook")
    await eventually(lambda: len(slow.got) >= 2, within=20)

    run = await fire(app, call, "webhook", "inbox", owner="bob")

    async def arrived() -> bool:
        states = {(await run.delivery(channel)).state for channel in run.channels}
        return states == {State.COMPLETED}

    await eventually(arrived, within=20)
    # Of the slow owner's twenty, two are under way at a time: nobody waited for all of them.
    assert len(slow.got) < 20


async def test_a_host_that_many_owners_share_takes_so_many_at_a_time(
    app: Holdfast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "PER_PLACE", 1)
    monkeypatch.setattr(delivering, "STAND_ASIDE", 0.02)
    receiver.delay = 0.05
    runs = []
    for owner in ("ann", "bob", "cid"):
        await app.recipients.put_async(owner, webhook_url=receiver.url)
        runs.append(await fire(app, app.registry["write"].call("x"), "webhook", owner=owner))

    for _ in range(50):  # a burst does not wait for those who stand aside
        await app.run_worker(burst=True)
        if len(receiver.got) == 3:
            break

    states = [await run.delivery("webhook") for run in runs]
    assert {delivery.state for delivery in states} == {State.COMPLETED}
    assert {delivery.charged for delivery in states} == {0}  # no failed attempt


async def test_quiet_hours_put_off_what_is_loud_uncharged_and_the_inbox_not(
    app: Holdfast, receiver: Receiver
) -> None:
    now = datetime.now(UTC)
    hours = {
        "from": f"{now - timedelta(minutes=5):%H:%M}",
        "to": f"{now + timedelta(hours=2):%H:%M}",
    }
    await app.recipients.put_async("ann", webhook_url=receiver.url, quiet_hours=hours)
    run = await fire(app, app.registry["write"].call("x"), "webhook", "inbox")

    await app.run_worker(burst=True)

    delivery = await run.delivery("webhook")
    assert (delivery.state, delivery.charged, receiver.got) == (State.QUEUED, 0, [])
    assert f"{delivery.run_at:%H:%M}" == hours["to"]
    assert (await run.delivery("inbox")).state is State.COMPLETED


async def test_whoever_has_unsubscribed_gets_nothing(app: Holdfast, receiver: Receiver) -> None:
    await app.recipients.put_async("ann", webhook_url=receiver.url)
    await app.recipients.unsubscribe_async("ann", "webhook")
    run = await fire(app, app.registry["write"].call("x"), "webhook")

    await app.run_worker(burst=True)

    delivery = await run.delivery("webhook")
    assert (delivery.state, receiver.got) == (State.COMPLETED, [])
    assert b"unsubscribed" in (delivery.result or b"")


async def test_a_receiver_inside_the_network_is_never_called(
    make_app: MakeApp, receiver: Receiver
) -> None:
    app = await make_app()
    await app.recipients.put_async("ann", webhook_url=receiver.url)
    strict = await make_app(callback_hosts="")
    run = await fire(strict, strict.registry["write"].call("x"), "webhook")

    await strict.run_worker(burst=True)

    delivery = await run.delivery("webhook")
    assert (delivery.state, receiver.got) == (State.FAILED, [])
    assert delivery.error is not None
    assert "is not a public address" in delivery.error.message


async def test_a_notice_without_a_run_is_delivered_once_per_key(app: Holdfast) -> None:
    client = await app.verbs()
    ids = IdMaker()

    async def notify() -> None:
        tasks = notice_tasks(
            "ann", ["inbox"], "Budget used up", "Paused until tomorrow.", "budget 2026-01-01",
            new_id=lambda: next(ids.make(1)),
            head_start=app.settings.aging.head_start(Priority.NORMAL),
        )  # fmt: skip
        await client.store.commit(Changes(uuid4().hex, tasks, idempotency_window=3600.0))

    await notify()
    await notify()
    await app.run_worker(burst=True)

    (item,) = (await app.inbox.list_async("ann")).items
    assert (item.title, item.content) == ("Budget used up", "Paused until tomorrow.")
    assert (item.execution, item.is_failure) == (None, False)


class Sms:
    """A channel of an app's own."""

    is_loud = True

    def __init__(self, sent: list[tuple[str, str]]) -> None:
        self.sent = sent

    def missing(self) -> str | None:
        return None

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        return () if recipient.owner == "nobody" else (f"+49 {recipient.owner}", "+49 old")

    def place(self, address: str) -> str:
        return "sms.example"

    async def send(self, message: Message, address: str) -> str:
        if address == "+49 old":
            raise AddressGone("number is not in use")
        if message.content == "bad":
            raise Fatal("not in this country")
        self.sent.append((address, f"{message.title}: {message.content}"))
        return "queued"


async def test_an_app_brings_a_channel_of_its_own(app: Holdfast) -> None:
    sent: list[tuple[str, str]] = []
    app.channel("sms", Sms(sent))

    good = await fire(app, app.registry["write"].call("x"), "sms")
    bad = await fire(app, app.registry["write"].call("bad"), "sms")
    await app.run_worker(burst=True)

    assert sent == [("+49 ann", "News: x")]
    assert (await good.delivery("sms")).state is State.COMPLETED
    failed = await bad.delivery("sms")
    assert failed.error is not None
    assert (failed.state, failed.error.message) == (State.FAILED, "not in this country")


async def test_a_decorated_class_is_a_channel(app: Holdfast) -> None:
    @app.channel("log")
    class Log(Sms):
        def __init__(self) -> None:
            super().__init__([])

    assert "log" in app.delivery.usable
    with pytest.raises(InvalidOption, match="expected an object with missing, addresses"):
        app.channel("bad", object())  # type: ignore[call-overload] # wrong on purpose


async def test_a_delivery_waits_for_a_process_that_has_its_channel(
    make_app: MakeApp, sqlite_url: str
) -> None:
    without, having = await make_app(), await make_app()
    sent: list[tuple[str, str]] = []
    having.channel("sms", Sms(sent))
    run = await fire(having, having.registry["write"].call("x"), "sms")

    await without.run_worker(burst=True)
    assert (await run.delivery("sms")).state is State.QUEUED

    await having.run_worker(burst=True)
    assert (await run.delivery("sms")).state is State.COMPLETED


@pytest.mark.parametrize(
    ("channels", "says"),
    [
        (["emial"], "channels: there is no channel 'emial'. Did you mean 'email'?"),
        (["email"], "channels: email is not set up here: set `smtp_url`"),
        (["push"], "channels: push is not set up here: set `fcm_credentials`"),
        (["web_push"], "channels: web_push is not set up here: set `vapid_private_key`"),
        (["inbox", "webhook"], "channels: webhook needs a webhook URL of 'ann'"),
    ],
)
async def test_channels_that_could_not_deliver_are_refused_with_the_reason(
    app: Holdfast, channels: list[str], says: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        app.delivery.check(channels, None, "ann")

    assert str(refused.value).startswith(says)


async def test_a_channel_that_was_unsubscribed_from_is_refused(app: Holdfast) -> None:
    recipient = await app.recipients.unsubscribe_async("ann", "inbox")

    with pytest.raises(InvalidOption, match="'ann' has unsubscribed from inbox"):
        app.delivery.check(["inbox"], recipient, "ann")


async def test_many_items_of_one_owner_are_numbered_without_gaps(app: Holdfast) -> None:
    runs = [await fire(app, app.registry["write"].call(n), "inbox") for n in range(12)]

    await app.run_worker(burst=True)

    items = (await app.inbox.list_async("ann")).items
    assert [item.number for item in items] == list(range(12, 0, -1))
    assert {item.execution for item in items} == {run.id for run in runs}


def test_recipients_and_inboxes_have_sync_verbs_too(sqlite_url: str) -> None:
    with Holdfast(url=sqlite_url) as app:
        app.recipients.put("ann", email="ann@example.com", language="de")
        said: Any = app.recipients.patch("ann", timezone="UTC")

        assert (said.email, said.language, said.timezone) == ("ann@example.com", "de", "UTC")
        assert app.inbox.list("ann").items == []
        assert app.recipients.delete("ann")
        assert app.recipients.get("ann") is None
