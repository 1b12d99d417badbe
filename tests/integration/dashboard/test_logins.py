"""Who comes in, how they stay, and how they are put out."""

from __future__ import annotations

from datetime import timedelta
from http.cookies import SimpleCookie

import httpx
import pytest
from tests.integration.dashboard.web import Web, web
from tests.integration.server.live import LiveServer

from holdfast.core.record import Put
from holdfast.dashboard.sessions import SESSION, SessionKeeper
from holdfast.server.brake import MOST_FAILURES

PAGES = ["/", "/tasks", "/tasks/confirm", "/find", "/tasks/views"]


def cookie_of(answer: httpx.Response) -> SimpleCookie:
    return SimpleCookie(answer.headers["set-cookie"])


@pytest.mark.parametrize("path", PAGES)
def test_whoever_is_not_logged_in_is_led_to_the_login_and_back(
    dashboard: LiveServer, path: str
) -> None:
    nobody = Web(dashboard)

    asked = nobody.get(f"{path}?queue=mail")
    answer = nobody.client.post(
        "/login",
        data={
            "token": dashboard.token("admin"),
            "next": httpx.URL(asked.headers["location"]).params["next"],
        },
    )

    assert asked.status_code == 303
    assert asked.headers["location"].startswith("/login?next=")
    assert answer.headers["location"] == f"{path}?queue=mail"


def test_the_cookie_is_for_our_own_pages_and_no_script(dashboard: LiveServer) -> None:
    answer = Web(dashboard).client.post("/login", data={"token": dashboard.token("read")})

    (cookie,) = cookie_of(answer).values()
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
    assert not cookie["secure"]
    assert int(cookie["max-age"]) == 12 * 3600


def test_the_cookie_is_secure_where_the_browser_speaks_tls(dashboard: LiveServer) -> None:
    host = dashboard.url.removeprefix("http://")
    origin = {"Origin": f"https://{host}"}  # a proxy speaks it for us

    answer = Web(dashboard).client.post(
        "/login", data={"token": dashboard.token("read")}, headers=origin
    )

    (cookie,) = cookie_of(answer).values()
    assert cookie["secure"]


def test_the_store_has_no_secret_of_a_session(dashboard: LiveServer) -> None:
    somebody = web(dashboard, "read")

    (secret,) = somebody.client.cookies.values()
    found = dashboard.app.wait_for(dashboard.app.client.store.records(SESSION, limit=10))
    assert len(found) == 1
    assert secret not in repr(found) + found[0].document + found[0].key


@pytest.mark.parametrize("token", ["", "hf_", "x" * 10_000, "hf_0123456789abcdef_" + "A" * 43, "é"])
def test_what_is_no_token_opens_nothing(dashboard: LiveServer, token: str) -> None:
    answer = Web(dashboard).client.post("/login", data={"token": token})

    assert answer.status_code == 401
    assert "This token opens nothing" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_token_that_may_not_read_is_told_so(dashboard: LiveServer) -> None:
    token = dashboard.token("submit")

    answer = Web(dashboard).client.post("/login", data={"token": token})

    assert answer.status_code == 403
    assert "has no scope read" in answer.text
    assert "set-cookie" not in answer.headers


def test_who_tries_too_many_tokens_is_slowed_and_a_good_one_still_opens(
    dashboard: LiveServer,
) -> None:
    nobody, api = Web(dashboard), dashboard.client()
    for _ in range(MOST_FAILURES):
        nobody.client.post("/login", data={"token": "no"})

    slowed = nobody.client.post("/login", data={"token": "no"})
    at_the_api = api.get("/api/v1/tasks")

    assert slowed.status_code == 429
    assert int(slowed.headers["retry-after"]) > 0
    assert at_the_api.status_code == 429  # one brake for both ways in
    assert web(dashboard, "read").get("/tasks").status_code == 200


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "\\evil",
        "/a\nb",
        "javascript:x",
    ],
)
def test_a_login_never_leads_elsewhere(dashboard: LiveServer, wanted: str) -> None:
    data = {"token": dashboard.token("read"), "next": wanted}

    answer = Web(dashboard).client.post("/login", data=data)

    assert answer.headers["location"] == "/"


def test_a_logout_ends_the_session_and_not_only_the_cookie(dashboard: LiveServer) -> None:
    somebody = web(dashboard, "read")
    stolen = dict(somebody.client.cookies)

    somebody.post("/logout")

    assert not somebody.client.cookies
    again = httpx.get(f"{dashboard.url}/tasks", cookies=stolen)
    assert (again.status_code, again.headers["location"]) == (303, "/login?next=%2Ftasks")


def test_a_revoked_token_ends_its_sessions_at_once(both: LiveServer) -> None:
    token_id, text = both.new_token("admin")
    somebody = Web(both, text)
    assert somebody.get("/tasks").status_code == 200

    both.app.wait_for(both.app.client.tokens.revoke(token_id))

    assert somebody.get("/tasks").status_code == 303
    assert somebody.get("/live/tasks").status_code == 303


def test_an_expired_session_is_over_and_forgotten(both: LiveServer) -> None:
    somebody = web(both, "read")
    store, verbs = both.app.client.store, both.app.verbs
    (record,) = both.app.wait_for(store.records(SESSION, limit=1))
    now = both.app.wait_for(store.now())
    over = record.document.replace(
        record.document.split('"expires_at": "')[1].split('"')[0],
        (now - timedelta(seconds=1)).isoformat(),
    )
    put = Put(SESSION, record.key, over, record.version, group=record.group, due_in=0.0)

    from holdfast.core.record import Changes

    both.app.wait_for(store.commit(Changes("over", records=[put])))

    assert somebody.get("/tasks").status_code == 303
    both.app.wait_for(SessionKeeper(verbs).tick())
    assert not both.app.wait_for(store.records(SESSION, limit=1))


def test_a_new_login_leaves_no_session_behind(dashboard: LiveServer) -> None:
    somebody = web(dashboard, "read")

    somebody.client.post("/login", data={"token": dashboard.token("admin")})

    store = dashboard.app.client.store
    assert len(dashboard.app.wait_for(store.records(SESSION, limit=10))) == 1


def test_whoever_comes_by_a_link_elsewhere_is_let_in_by_the_next_request(
    dashboard: LiveServer,
) -> None:
    """A cookie that is SameSite=Strict does not come with such a link."""
    stranger = Web(dashboard)

    answer = stranger.get("/tasks", headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0">' in answer.text


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None, "http://127.0.0.1:1"])
def test_forms_of_other_sites_are_refused(dashboard: LiveServer, origin: str | None) -> None:
    somebody = web(dashboard, "admin")
    csrf = somebody.csrf()
    del somebody.client.headers["origin"]
    headers = {} if origin is None else {"Origin": origin}

    for path in ("/login", "/logout", "/tasks/actions"):
        answer = somebody.client.post(path, data={"csrf": csrf}, headers=headers)
        assert answer.status_code == 403, path
        assert "did not come from a page of this dashboard" in answer.text


@pytest.mark.parametrize("csrf", ["", "wrong", "é"])
def test_forms_without_the_sessions_secret_are_refused(dashboard: LiveServer, csrf: str) -> None:
    somebody = web(dashboard, "admin")
    other = web(dashboard, "admin").csrf()

    for given in (csrf, other):
        for path in ("/logout", "/tasks/actions", "/tasks/views"):
            answer = somebody.client.post(path, data={"csrf": given, "name": "x"})
            assert answer.status_code == 403, path
    assert somebody.get("/tasks").status_code == 200


def test_a_message_that_somebody_made_up_is_not_shown(dashboard: LiveServer) -> None:
    somebody = web(dashboard, "admin")
    port = dashboard.url.rpartition(":")[2]
    somebody.client.cookies.set(f"holdfast_flash_{port}", "WyJzZW5kIG1vbmV5IiwgZmFsc2Vd.00")

    answer = somebody.get("/tasks")

    assert answer.status_code == 200
    assert "send money" not in answer.text
