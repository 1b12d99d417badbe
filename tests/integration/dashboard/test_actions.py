"""What forms do, without a script: every action of the pages of tasks, on both kinds of store."""

from __future__ import annotations

import json
import re

import pytest
from tests.integration.dashboard.web import Web, submit, web
from tests.integration.server.live import LiveServer

from holdfast.core.task import State
from holdfast.dashboard.pages import confirm


def chosen(ops: Web, query: str) -> tuple[str, dict[str, list[str]]]:
    """The page that asks once more, and the fields of its form."""
    page = ops.get(f"/tasks/confirm?{query}").text
    form = page[page.index('action="/tasks/actions"') :] if "/tasks/actions" in page else ""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form):
        fields.setdefault(name, []).append(value)
    return page, {name: each for name, each in fields.items() if name != "csrf"}


def test_one_task_is_cancelled_and_started_again(both: LiveServer) -> None:
    task_id = submit(both, "shop.add", a=1)
    ops = web(both, "admin")

    cancelled = ops.said(ops.post(f"/tasks/{task_id}/cancel"))
    seen = both.app.get(task_id).state
    again = ops.said(ops.post(f"/tasks/{task_id}/cancel"))
    started = ops.said(ops.post(f"/tasks/{task_id}/retry"))

    assert (cancelled, seen) == ("Cancelled.", State.CANCELLED)
    assert "cancel" in again
    assert started == "It starts again as soon as a worker is free."
    assert both.app.get(task_id).state is State.QUEUED


def test_chosen_tasks_are_counted_first_and_then_cancelled(both: LiveServer) -> None:
    ids = [submit(both, "shop.add", a=n) for n in range(4)]
    both.app.cancel(ids[0])
    ops = web(both, "admin")

    page, fields = chosen(ops, "action=cancel&" + "&".join(f"ids={each}" for each in ids[:3]))
    before = [both.app.get(each).state for each in ids[1:3]]
    said = ops.said(ops.post("/tasks/actions", **fields))

    assert "Cancel 2 tasks?" in page
    assert "the others cannot be cancelled" in page
    assert before == [State.QUEUED, State.QUEUED]
    assert said == "2 tasks cancelled."
    assert both.app.get(ids[3]).state is State.QUEUED


def test_of_very_many_it_is_said_that_they_are_more_than_were_counted(
    both: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        submit(both, "shop.add", a=n)
    ops = web(both, "admin")
    monkeypatch.setattr(confirm, "MOST_COUNTED", 2)

    page, fields = chosen(ops, "action=cancel&all=yes&queue=default")
    said = ops.said(ops.post("/tasks/actions", **fields))

    assert "Cancel more than 2 tasks?" in page
    assert said == "3 tasks cancelled."


def test_all_that_match_are_those_that_matched_when_they_were_counted(both: LiveServer) -> None:
    submit(both, "shop.add", a=1)
    mail = submit(both, "shop.mail", to="ann")
    ops = web(both, "admin")

    page, fields = chosen(ops, "action=cancel&all=yes&queue=default&within=1h")
    late = submit(both, "shop.add", a=2)
    said = ops.said(ops.post("/tasks/actions", **fields))

    assert "Cancel 1 task?" in page
    assert "Queue default, Created within the last hour" in page
    assert said == "1 task cancelled."
    assert both.app.get(late).state is State.QUEUED
    assert both.app.get(mail).state is State.QUEUED


@pytest.mark.parametrize(("action", "said"), [("retry", "started again"), ("discard", "discarded")])
def test_dead_letters_are_started_again_at_a_pace_or_forgotten(
    dashboard: LiveServer, action: str, said: str
) -> None:
    ids = [submit(dashboard, "shop.fail") for _ in range(2)]
    dashboard.work()
    ops = web(dashboard, "admin")

    page, fields = chosen(ops, f"action={action}&all=yes&status=dead_letter")
    pace = {"pace": ["0.5"]} if action == "retry" else {}
    told = ops.said(ops.post("/tasks/actions", **fields, **pace))

    assert "State dead letter" in page
    assert told == f"2 tasks {said}."
    assert dashboard.app.count(state="dead_letter") == 0
    assert dashboard.app.count(ids=ids) == (2 if action == "retry" else 0)


@pytest.mark.parametrize("pace", ["x", "0", "-1", "nan", "1e9"])
def test_a_pace_that_is_none_is_refused(dashboard: LiveServer, pace: str) -> None:
    submit(dashboard, "shop.fail")
    dashboard.work()
    ops = web(dashboard, "admin")

    answer = ops.post("/tasks/actions", action="retry", all="yes", status="dead_letter", pace=pace)

    assert "tasks a second" in ops.said(answer)
    assert dashboard.app.count(state="dead_letter") == 1


def test_nothing_to_do_is_said_before_it_is_done(dashboard: LiveServer) -> None:
    task_id = submit(dashboard, "shop.add", a=1)

    page, fields = chosen(web(dashboard, "admin"), f"action=discard&ids={task_id}")

    assert "Nothing to discard" in page
    assert fields == {}


def test_a_task_is_submitted_anew_with_other_arguments(both: LiveServer) -> None:
    old = submit(both, "shop.mail", to="ann", copies=2)
    ops = web(both, "admin")
    form = ops.get(f"/tasks/{old}/edit").text

    fields = {"argument.to": '"bob"', "argument.body": "", "argument.copies": "3"}
    answer = ops.post(f"/tasks/{old}/edit", **fields)
    said = ops.said(answer)

    new = both.app.get(answer.headers["location"].rpartition("/")[2])
    assert "&#34;ann&#34;" in form
    assert said == "This is the new task."
    assert json.loads(new.payload) == {"to": "bob", "copies": 3} | {
        key: value for key, value in json.loads(new.payload).items() if key == "body"
    }
    assert (new.queue, new.tags, new.priority) == ("mail", ("letters",), "high")
    assert both.app.get(old).state is State.QUEUED


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("to", "bob", "Text needs quotes"),
        ("to", "17", "string"),
        ("copies", "99", "less than or equal to 10"),
        ("copies", '{"a": 1, "a": 2}', "comes twice"),
    ],
)
def test_what_is_wrong_is_said_at_the_field(
    dashboard: LiveServer, field: str, text: str, problem: str
) -> None:
    old = submit(dashboard, "shop.mail", to="ann", copies=2)
    ops = web(dashboard, "admin")
    good = {"argument.to": '"ann"', "argument.copies": "2"}

    answer = ops.post(f"/tasks/{old}/edit", **good | {f"argument.{field}": text})

    place = answer.text[answer.text.index(f'name="argument.{field}"') :]
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in place.partition(">")[0]
    assert problem in place.partition("</div>")[0]
    assert dashboard.app.count() == 1


def test_a_secret_is_never_shown_and_must_be_typed_again(both: LiveServer) -> None:
    old = submit(both, "shop.login", user="ann", password="hunter2")
    ops = web(both, "admin")

    seen = ops.get(f"/tasks/{old}").text + ops.get(f"/tasks/{old}/edit").text
    left_out = ops.post(f"/tasks/{old}/edit", **{"argument.user": '"bob"'})
    stars = ops.post(
        f"/tasks/{old}/edit", **{"argument.user": '"bob"', "argument.password": '"**********"'}
    )
    typed = ops.post(
        f"/tasks/{old}/edit", **{"argument.user": '"bob"', "argument.password": '"hunter3"'}
    )

    assert "hunter2" not in seen
    assert [left_out.status_code, stars.status_code, typed.status_code] == [422, 422, 303]
    assert "type it again" in left_out.text


def test_tasks_are_found_by_id_by_its_beginning_and_by_key(both: LiveServer) -> None:
    made = both.app.submit_by_name("shop.add", {"a": 1}, idempotency_key="order 17/ä")
    other = both.app.submit_by_name("shop.add", {"a": 1}, unique_key="u-1")
    ops = web(both, "admin")

    for text in (str(made.id), str(made.id).upper(), str(made.id)[:35], "order 17/ä"):
        found = ops.get("/find", params={"q": text})
        assert found.headers.get("location") == f"/tasks/{made.id}", text
    assert ops.get("/find", params={"q": "u-1"}).headers["location"] == f"/tasks/{other.id}"
    several = ops.get("/find", params={"q": str(made.id)[:8]}).text
    assert str(made.id) in several
    assert str(other.id) in several
    assert "No task that you may see" in ops.get("/find", params={"q": "nothing"}).text


def test_a_task_is_found_by_the_beginning_of_an_id_that_ends_with_a_zero(both: LiveServer) -> None:
    while not (first := submit(both, "shop.add", a=1)).endswith("0"):
        pass

    found = web(both, "admin").get("/find", params={"q": first[:35]})

    assert found.headers.get("location") == f"/tasks/{first}"


def test_a_saved_view_leads_back_to_its_filters(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")

    ops.post("/tasks/views", name=" late   mail ", query="status=failed&status=retrying&queue=mail")
    page = ops.get("/tasks").text
    refused = ops.said(ops.post("/tasks/views", name="x" * 61, query=""))

    assert '<a href="/tasks?status=failed&amp;status=retrying&amp;queue=mail">late mail</a>' in page
    assert "60" in refused


def test_pages_of_a_list_follow_each_other_without_gaps(both: LiveServer) -> None:
    ids = [submit(both, "shop.add", a=n) for n in range(5)]
    ops = web(both, "admin")

    seen: list[str] = []
    path: str | None = "/tasks?limit=2"
    while path:
        page = ops.get(path).text
        seen += re.findall(r'<tr data-key="([0-9a-f-]{36})"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        path = following and following[1].replace("&amp;", "&") + "&limit=2"

    assert seen == ids[::-1]


def test_a_task_that_waits_says_why_and_leads_to_who_holds_it_up(both: LiveServer) -> None:
    holder, waits = (
        submit(both, "shop.order", customer=1, items=[]) for _ in range(2)
    )  # one customer's orders exclude each other
    ops = web(both, "admin")

    page = ops.get(f"/tasks/{waits}").text

    assert "Why it waits" in page
    assert f'<a href="/tasks/{holder}">{holder[:13]}</a>' in page
    assert "lock=customer%3A1" in page or "lock=customer:1" in page


def test_what_is_submitted_again_on_the_command_line_is_quoted(dashboard: LiveServer) -> None:
    task_id = submit(dashboard, "shop.mail", to="o'brien $(reboot)")

    page = web(dashboard, "admin").get(f"/tasks/{task_id}").text

    assert "o&#39;&#34;&#39;&#34;&#39;brien $(reboot)" in page
    assert "app.submit_by_name(" in page
