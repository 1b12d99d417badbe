"""`HttpClient` against a real server: the local client's verbs, words and errors."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import HttpClient, errors
from holdfast.core.task import State, SubmitOutcome
from holdfast.core.token import Scope

NOBODY = "0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60"


@pytest.fixture
def client(either_server: LiveServer) -> Iterator[HttpClient]:
    with HttpClient(either_server.url, token=either_server.token("admin")) as client:
        yield client


@pytest.fixture
def sqlite_client(live_server: LiveServer) -> Iterator[HttpClient]:
    with HttpClient(live_server.url, token=live_server.token("admin")) as client:
        yield client


def test_a_task_goes_round(either_server: LiveServer, client: HttpClient) -> None:
    sent = client.submit("shop.add", {"a": 1, "b": 2}, priority="high", tags=["t"], timeout="1m")
    waiting = client.get(sent.task_id)
    either_server.work()
    done = client.get(sent.task_id)

    assert (sent.created, sent.state) == (True, State.QUEUED)
    assert (waiting.name, waiting.parameters) == ("shop.add", {"a": 1, "b": 2})
    assert (waiting.priority, waiting.tags, waiting.timeout) == ("high", ("t",), 60.0)
    assert (done.state, done.result, done.attempt) == (State.COMPLETED, 3, 1)
    assert client.result(sent.task_id) == 3
    assert [a.ended for a in client.history(sent.task_id).attempts] == ["completed"]
    assert client.why(sent.task_id).reasons[0][0] == "completed"


def test_many_go_in_one_step_or_not_at_all(either_server: LiveServer, client: HttpClient) -> None:
    sent = client.submit_many([client.call("shop.add", {"a": n}) for n in range(20)])
    with pytest.raises(errors.InvalidArguments):
        client.submit_many([client.call("shop.add", {"a": 1}), client.call("shop.add", {"a": "x"})])

    assert len({each.task_id for each in sent}) == 20
    assert client.submit_many([]) == []
    # They may be a second old.
    either_server.until(lambda: client.stats().states[State.QUEUED] == 20)


def test_pages_and_filters(client: HttpClient) -> None:
    ids = [client.submit("shop.add", {"a": n}, owner="ann").task_id for n in range(3)]
    client.submit("shop.mail", {"to": "x"})

    first = client.list(owner="ann", state=["queued", "running"], limit=2)
    second = client.list(owner="ann", state=["queued", "running"], limit=2, after=first.next)
    oldest = client.list(name_prefix="shop.a", oldest_first=True)

    assert [task.id for task in (*first.tasks, *second.tasks)] == ids[::-1]
    assert second.next is None
    assert [task.id for task in oldest.tasks] == ids


def test_keys_lead_to_the_task_that_exists(client: HttpClient) -> None:
    first = client.submit("shop.add", {"a": 1}, idempotency_key="k")
    again = client.submit("shop.add", {"a": 1}, idempotency_key="k")

    assert (again.task_id, again.outcome) == (first.task_id, SubmitOutcome.IDEMPOTENCY_KEY)
    with pytest.raises(errors.IdempotencyConflict) as caught:
        client.submit("shop.add", {"a": 2}, idempotency_key="k")
    assert caught.value.task_id == first.task_id


def test_tasks_are_cancelled_retried_replayed_and_discarded(
    live_server: LiveServer, sqlite_client: HttpClient
) -> None:
    client = sqlite_client
    waiting = client.submit("shop.add", {"a": 1}, delay="1h").task_id
    doomed = [client.submit("shop.fail").task_id for _ in range(3)]
    live_server.work()

    cancelled = client.cancel(waiting)
    retried = client.retry(waiting)

    assert (cancelled.state, retried.state) == (State.CANCELLED, State.QUEUED)
    assert client.cancel_many(name="shop.add", dry_run=True) == 1
    assert client.cancel_many(name="shop.add") == 1
    assert client.replay(dry_run=True) == 3
    assert client.replay(ids=doomed[:1]) == 1
    assert client.discard(ids=doomed[1:]) == 2
    with pytest.raises(errors.TaskNotFound):
        client.get(doomed[1])
    with pytest.raises(errors.InvalidTransition) as caught:
        client.cancel(waiting)
    assert (caught.value.task_id, caught.value.state) == (waiting, "cancelled")


def test_queues_and_workers(live_server: LiveServer, sqlite_client: HttpClient) -> None:
    client = sqlite_client
    client.submit("shop.mail", {"to": "ann"})

    assert (client.pause("mail"), client.pause("mail")) == (True, False)
    paused = {queue.queue: queue.paused for queue in client.queues()}
    assert paused["mail"]
    assert client.resume("mail")
    live_server.work()
    assert client.workers()[0].status == "stopped"
    with pytest.raises(errors.WorkerNotFound):
        client.drain("nobody")


def test_tokens(live_server: LiveServer, sqlite_client: HttpClient) -> None:
    token, text = sqlite_client.tokens.create("ci", ["read"], "1d")

    with HttpClient(live_server.url, token=text) as reader:
        assert reader.list().tasks == ()
        with pytest.raises(errors.ServiceError) as refused:
            reader.submit("shop.add", {"a": 1})
        sqlite_client.tokens.revoke(token.id)
        with pytest.raises(errors.ServiceError) as unknown:
            reader.list()

    assert (refused.value.status, refused.value.code) == (403, "insufficient_scope")
    assert unknown.value.status == 401
    assert refused.value.problem_id
    assert {each.id: each.scopes for each in sqlite_client.tokens.list()}[token.id] == {Scope.READ}


def test_errors_are_those_of_the_local_client(sqlite_client: HttpClient) -> None:
    client = sqlite_client
    with pytest.raises(errors.TaskNotFound):
        client.get(NOBODY)
    with pytest.raises(errors.TaskNotFound):
        client.get("42")
    with pytest.raises(errors.UnknownTask) as unknown:
        client.submit("shop.ad", {"a": 1})
    with pytest.raises(errors.InvalidArguments) as misfit:
        client.submit("shop.mail", {"to": "ann", "copies": 99})
    with pytest.raises(errors.InvalidOption, match="priority"):
        client.submit("shop.add", {"a": 1}, priority="hihg")

    assert unknown.value.suggestion == "shop.add"
    assert misfit.value.problems[0][0] == "copies"


def test_a_failed_task_is_raised_with_its_error(
    live_server: LiveServer, sqlite_client: HttpClient
) -> None:
    task_id = sqlite_client.submit("shop.fail", {"message": "ouch"}).task_id
    with pytest.raises(errors.ResultTimeout):
        sqlite_client.result(task_id, timeout=0)
    live_server.work()

    with pytest.raises(errors.TaskFailed) as caught:
        sqlite_client.result(task_id, timeout="10s")

    assert caught.value.error is not None
    assert (caught.value.error.type, caught.value.error.message) == ("RuntimeError", "ouch")


def test_secrets_are_masked(sqlite_client: HttpClient) -> None:
    sent = sqlite_client.submit("shop.login", {"user": "ann", "password": "hunter2"})

    parameters = sqlite_client.get(sent.task_id).parameters

    assert parameters == {"user": "ann", "password": "**********"}


def test_a_task_can_be_followed(live_server: LiveServer, sqlite_client: HttpClient) -> None:
    task_id = sqlite_client.submit("shop.add", {"a": 1}).task_id
    live_server.work()

    events = list(sqlite_client.events(task_id))
    rest = list(sqlite_client.events(task_id, after=events[2].id))

    assert [event.event for event in events][-2:] == ["state", "end"]
    assert rest == events[3:]


async def test_every_verb_has_an_async_face(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url)) as server:
        async with HttpClient(server.url, token=server.token("admin")) as client:
            sent = await client.submit_async("shop.add", {"a": 1})
            task = await client.cancel_async(sent.task_id)
            page = await client.list_async(state="cancelled")
            events = [event async for event in client.events_async(sent.task_id)]
            tokens = await client.tokens.list_async()

    assert (task.state, page.tasks[0].id) == (State.CANCELLED, sent.task_id)
    assert events[-1].data == {"status": "cancelled"}
    assert len(tokens) == 1


def test_a_server_that_is_away_is_unavailable_not_a_surprise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.http.talk.FIRST_PAUSE", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    with (
        HttpClient(url, token="hf_x") as client,
        pytest.raises(errors.StoreUnavailable, match="It did not arrive"),
    ):
        client.submit("shop.add", {"a": 1})


def test_what_is_no_web_address_is_refused() -> None:
    with pytest.raises(errors.ConfigError, match="expected http://"):
        HttpClient("sqlite:///x.db", token="hf_x")
