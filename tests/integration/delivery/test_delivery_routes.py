"""Recipients, inboxes, deliveries and unsubscribing, over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app
from tests.kit.runs import Run, fire

from holdfast.delivery.unsubscribing import token_of, unsubscribe_url
from holdfast.webhooks.signing import secret_of_owner

SECRET = "a secret of some length"


@pytest.fixture
def server(sqlite_url: str) -> Iterator[LiveServer]:
    app = make_app(
        sqlite_url,
        callback_secret=SECRET,
        delivery_secret=SECRET,
        public_url="http://tasks.example.com",
    )
    with serve(app) as live:
        yield live


@pytest.fixture
def ann(server: LiveServer) -> httpx.Client:
    return server.client("submit", "read", owner="ann")


@pytest.fixture
def bob(server: LiveServer) -> httpx.Client:
    return server.client("submit", "read", "operate", owner="bob")


def delivered(server: LiveServer, *, owner: str = "ann", number: int = 1) -> list[Run]:
    """So many results in the owner's inbox."""

    async def done() -> list[Run]:
        task = server.app.registry["shop.mail"]
        runs = [
            await fire(server.app, task.call(f"result {n}"), "inbox", owner=owner)
            for n in range(number)
        ]
        await server.app.run_worker(burst=True, queues="*")
        return runs

    return asyncio.run(done())


def test_a_recipient_is_said_shown_and_changed(server: LiveServer) -> None:
    path, client = "/api/v1/recipients/ann", server.client("submit", "read")
    words = {
        "email": "ann@example.com",
        "webhook_url": "https://hooks.example.com/a",
        "timezone": "Europe/Berlin",
        "quiet_hours": {"from": "22:00", "to": "07:00"},
        "devices": ["phone"],
    }
    assert client.get(path).status_code == 404

    said = client.put(path, json=words).json()

    assert {name: said[name] for name in words} == words
    assert said["webhook_secret"] == secret_of_owner("ann", SECRET)
    assert client.get(path).json() == said
    changed = client.patch(path, json={"quiet_hours": None, "language": "de"}).json()
    assert (changed["quiet_hours"], changed["language"]) == (None, "de")
    assert changed["email"] == "ann@example.com"
    assert client.put(path, json={"language": "fr"}).json()["email"] is None


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"email": "ann"}, "email"),
        ({"email": "ann@example.com\r\nBcc: all@example.com"}, "email"),
        ({"email": "a@b.example, c@d.example"}, "email"),
        ({"webhook_url": "http://10.0.0.1/x"}, "webhook_url"),
        ({"webhook_url": "http://localhost/x"}, "webhook_url"),
        ({"timezone": "Europe/Berlim"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"quiet_hours": {"from": "25:00", "to": "07:00"}}, "quiet_hours.from"),
        ({"quiet_hours": {"from": "07:00", "to": "07:00"}}, "quiet_hours"),
        ({"quiet_hours": {"from": "07:00"}}, "quiet_hours.to"),
        ({"unsubscribed": ["emial"]}, "unsubscribed"),
        ({"devices": ["x"] * 51}, "devices"),
        ({"devices": [""]}, "devices[0]"),
        ({"language": "de de"}, "language"),
        ({"emial": "ann@example.com"}, "emial"),
        (
            {"web_push": [{"endpoint": "http://169.254.1.1/", "keys": {
                "p256dh": "B" + "A" * 86, "auth": "A" * 22}}]},
            "web_push[0].endpoint",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_recipient_is_named_and_nothing_is_stored(
    server: LiveServer, words: dict[str, Any], field: str
) -> None:
    client = server.client("submit", "read")

    refused = client.put("/api/v1/recipients/ann", json={"language": "en", **words})

    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert client.get("/api/v1/recipients/ann").status_code == 404


def test_an_owners_token_sets_its_noise_and_browsers_but_not_where_mail_goes(
    server: LiveServer, ann: httpx.Client, bob: httpx.Client
) -> None:
    path = "/api/v1/recipients/ann"
    server.admin.put(path, json={"email": "ann@example.com"})

    said = ann.put(path, json={"timezone": "Asia/Tokyo", "devices": ["phone"]})

    assert (said.status_code, said.json()["email"]) == (200, "ann@example.com")
    assert said.json()["webhook_secret"] is None
    for method in ("PUT", "PATCH"):
        refused = ann.request(method, path, json={"email": "eve@example.com"})
        assert (refused.status_code, refused.json()["field"]) == (403, "email")
    assert [bob.get(path).status_code, bob.patch(path, json={}).status_code] == [404, 404]
    mine = bob.put("/api/v1/recipients/bob", json={"email": "bob@example.com"})
    assert mine.status_code == 200  # with the scope operate
    assert server.admin.get(path).json()["email"] == "ann@example.com"


def test_an_inbox_is_listed_in_pages_read_and_emptied(
    server: LiveServer, ann: httpx.Client
) -> None:
    delivered(server, number=3)

    page = ann.get("/api/v1/inbox", params={"limit": 2}).json()
    rest = ann.get("/api/v1/inbox", params={"before": page["next"]}).json()

    items = [*page["items"], *rest["items"]]
    assert [item["number"] for item in items] == [3, 2, 1]
    assert {item["content"] for item in items} == {"result 0", "result 1", "result 2"}
    assert rest["next"] is None
    one = f"/api/v1/inbox/{items[0]['item_id']}"
    assert ann.patch(one, json={"read": True}).json()["read_at"] is not None
    unread = ann.get("/api/v1/inbox", params={"unread": "true"}).json()["items"]
    assert [item["number"] for item in unread] == [2, 1]
    assert ann.patch(one, json={"read": False}).json()["read_at"] is None
    assert ann.delete(one).status_code == 204
    assert [ann.get(one).status_code, ann.delete(one).status_code] == [404, 404]


def test_no_route_shows_or_changes_what_is_in_anothers_inbox(
    server: LiveServer, ann: httpx.Client, bob: httpx.Client
) -> None:
    (run,) = delivered(server)
    item = ann.get("/api/v1/inbox").json()["items"][0]
    one = f"/api/v1/inbox/{item['item_id']}"

    assert bob.get("/api/v1/inbox").json()["items"] == []
    assert bob.get("/api/v1/inbox", params={"owner": "ann"}).status_code == 404
    assert bob.get("/api/v1/inbox/events", params={"owner": "ann"}).status_code == 404
    assert [bob.get(one).status_code, bob.delete(one).status_code] == [404, 404]
    assert bob.patch(one, json={"read": True}).status_code == 404
    assert bob.get("/api/v1/deliveries").json()["deliveries"] == []
    assert bob.get("/api/v1/deliveries", params={"execution": run.id}).json()["deliveries"] == []
    assert bob.get("/api/v1/deliveries", params={"owner": "ann"}).status_code == 404
    narrow = server.client("read", "submit", queues=["default"])
    assert narrow.get("/api/v1/inbox").status_code == 403
    assert ann.get(one).json() == item
    assert server.admin.get("/api/v1/inbox", params={"owner": "ann"}).json()["items"] == [item]


def events(stream: httpx.Response, number: int) -> list[tuple[str, Any]]:
    """So many items of a stream, with their ids."""
    found: list[tuple[str, Any]] = []
    event_id = ""
    for line in stream.iter_lines():
        if line.startswith("id: "):
            event_id = line.removeprefix("id: ")
        if line.startswith("data: "):
            found.append((event_id, json.loads(line.removeprefix("data: "))))
        if len(found) == number:
            break
    return found


def test_a_stream_tells_of_new_items_and_goes_on_where_it_was_left(
    server: LiveServer, ann: httpx.Client
) -> None:
    delivered(server)  # before anybody listens
    deliver = threading.Thread(target=delivered, args=(server,), kwargs={"number": 2})

    with ann.stream("GET", "/api/v1/inbox/events") as stream:
        deliver.start()
        told = events(stream, 2)
    deliver.join()
    with ann.stream("GET", "/api/v1/inbox/events", headers={"Last-Event-ID": "1"}) as stream:
        again = events(stream, 2)

    assert [event_id for event_id, _ in told] == ["2", "3"]
    assert again == told


def test_deliveries_are_listed_by_run_schedule_and_owner(
    server: LiveServer, ann: httpx.Client
) -> None:
    run, _ = delivered(server, number=2)

    (one,) = ann.get("/api/v1/deliveries", params={"execution": run.id}).json()["deliveries"]

    assert (one["channel"], one["status"], one["attempt"]) == ("inbox", "completed", 1)
    assert (one["execution"], one["owner"], one["error"]) == (run.id, "ann", None)
    listed = ann.get("/api/v1/deliveries", params={"schedule": one["schedule"]}).json()
    assert listed["deliveries"] == [one]
    page = ann.get("/api/v1/deliveries", params={"limit": 1}).json()
    more = ann.get("/api/v1/deliveries", params={"limit": 1, "after": page["next"]}).json()
    assert more == {"deliveries": [one], "next": None}
    task = ann.get(f"/api/v1/tasks/{one['delivery_id']}").json()
    assert (task["task_type"], task["queue"]) == ("holdfast.deliver", "deliveries")


def test_one_click_unsubscribes_and_a_look_does_not(server: LiveServer) -> None:
    link = unsubscribe_url(server.app.settings, "ann", "email")
    assert link is not None
    parts = urlsplit(link)
    at, nobody = f"{parts.path}?{parts.query}", server.client()

    page = nobody.get(at)

    assert (page.status_code, "<button" in page.text) == (200, True)
    assert server.admin.get("/api/v1/recipients/ann").status_code == 404
    for _ in range(2):
        done = nobody.post(at, data={"List-Unsubscribe": "One-Click"})
        assert done.status_code == 200
    assert server.admin.get("/api/v1/recipients/ann").json()["unsubscribed"] == ["email"]


@pytest.mark.parametrize("token", ["", "x", "x.y", "é.é", "W10.", "A" * 5000])
def test_a_link_that_is_not_ours_unsubscribes_nobody(server: LiveServer, token: str) -> None:
    nobody = server.client()

    answers = [nobody.request(m, "/unsubscribe", params={"token": token}) for m in ("GET", "POST")]

    assert [each.status_code for each in answers] == [404, 404]


def test_a_link_of_another_owner_or_secret_does_not_hold(server: LiveServer) -> None:
    body, _, mac = token_of(SECRET, "ann", "email").partition(".")
    other, _, _ = token_of(SECRET, "bob", "email").partition(".")
    forged = [f"{other}.{mac}", token_of("another secret of length", "ann", "email"), body]

    for token in forged:
        assert server.client().post("/unsubscribe", params={"token": token}).status_code == 404
