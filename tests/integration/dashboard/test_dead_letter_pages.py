"""The pages of dead letters: groups, and starting them again or forgetting them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.integration.dashboard.web import Web, submit, web
from tests.integration.server.live import LiveServer

from holdfast.core.task import State
from holdfast.dashboard import dead_groups


def die(server: LiveServer, *messages: str, **options: str) -> list[str]:
    """Dead letters that say this."""
    made = [
        str(server.app.submit_by_name("shop.fail", {"message": each}, **options).id)  # type: ignore[arg-type]
        for each in messages
    ]
    server.work()
    return made


def groups(page: str) -> dict[str, str]:
    """The counts by what the errors say."""
    return {
        line: count
        for count, line in re.findall(
            r'<td class="n count">([^<]+)</td>.*?<span class="error-text">([^<]*)</span>',
            page,
            re.DOTALL,
        )
    }


def key_in(page: str) -> str:
    (key,) = set(re.findall(r'<tr data-key="([0-9a-f]{16})"', page))
    return str(key)


def chosen(ops: Web, query: str) -> tuple[str, dict[str, str]]:
    """The page that asks once more, and the fields of its form."""
    page = ops.get(f"/dead-letters/confirm?{query}").text
    form = page[page.index('action="/dead-letters/act"') :] if "/dead-letters/act" in page else ""
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    return page, {name: text for name, text in fields.items() if name != "csrf"}


def test_dead_letters_are_grouped_by_what_they_say_but_for_numbers_and_ids(
    both: LiveServer,
) -> None:
    ids = die(
        both,
        "order 17 refused\nmore",
        "order 18 refused",
        "order 0190aa11-2222-7333-8444-555566667777 refused",
        "no such user",
    )
    ops = web(both, "read")

    page = ops.get("/dead-letters").text
    keys = re.findall(r'<tr data-key="([0-9a-f]{16})"', page)
    own = ops.get(f"/dead-letters/{keys[0]}").text

    assert groups(page) == {"order # refused": "3", "no such user": "1"}
    assert "4 tasks in 2 groups" in page
    assert "Replay" not in page
    assert [each in own for each in ids] == [True, True, True, False]
    assert "3 tasks among the newest 1,000" in own


def test_failed_tasks_are_shown_too_on_demand(dashboard: LiveServer) -> None:
    die(dashboard, "no")
    dashboard.admin.post("/api/v1/tasks", json={"task_type": "shop.add", "parameters": {"a": 1}})
    ops = web(dashboard, "admin")

    assert "1 task in 1 group" in ops.get("/dead-letters").text
    assert "1 task in 1 group" in ops.get("/dead-letters?failed=yes&task_type=shop.fail").text
    none = ops.get("/dead-letters?queue=mail").text
    assert "No dead letter matches Queue mail." in none
    assert ops.get("/dead-letters?queue=a,b").status_code in (200, 422)


def test_what_is_grouped_is_capped_and_says_so(
    dashboard: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_groups, "MOST", 2)
    monkeypatch.setattr(dead_groups, "AT_ONCE", 1)
    die(dashboard, *["no"] * 3)

    page = web(dashboard, "admin").get("/dead-letters").text

    assert groups(page) == {"no": "2+"}
    assert "3 tasks in 1 group; grouped are the newest 2" in page


@pytest.mark.parametrize("action", ["replay", "discard"])
def test_a_group_is_counted_first_and_then_acted_on(both: LiveServer, action: str) -> None:
    ids = die(both, "order 17", "order 18")
    (other,) = die(both, "else")
    ops = web(both, "admin")
    page = ops.get("/dead-letters").text
    key = re.findall(r'<tr data-key="([0-9a-f]{16})"', page)[0]

    asked, fields = chosen(ops, f"action={action}&group={key}")
    (late,) = die(both, "order 19")
    said = ops.said(ops.post("/dead-letters/act", **fields))

    done = {"replay": "start again", "discard": "are forgotten"}[action]
    assert f"{action.capitalize()} 2 tasks?" in asked
    assert said == f"2 tasks {done}."
    assert both.app.count(ids=ids) == (2 if action == "replay" else 0)
    assert both.app.count(ids=ids, state="dead_letter") == 0
    assert both.app.count(ids=[other, late], state="dead_letter") == 2


def test_all_that_match_are_replayed_at_a_pace(both: LiveServer) -> None:
    ids = die(both, "a", "b", "c")
    ops = web(both, "admin")

    asked, fields = chosen(ops, "action=replay&task_type=shop.fail")
    said = ops.said(ops.post("/dead-letters/act", **fields, minutes="10"))

    first, *_, last = sorted(both.app.get(each).run_at for each in ids)
    assert "Replay 3 tasks?" in asked
    assert "Task shop.fail" in asked
    assert said == "3 tasks start again."
    assert timedelta(minutes=6) <= last - first <= timedelta(minutes=10)


def test_tasks_a_second_are_a_pace_too(dashboard: LiveServer) -> None:
    ids = die(dashboard, "a", "b")
    ops = web(dashboard, "admin")

    _, fields = chosen(ops, "action=replay")
    ops.said(ops.post("/dead-letters/act", **fields, pace="0.1"))

    first, last = sorted(dashboard.app.get(each).run_at for each in ids)
    assert timedelta(seconds=9) <= last - first <= timedelta(seconds=11)


@pytest.mark.parametrize(
    "words",
    [
        {"pace": "0"}, {"pace": "x"}, {"pace": "-1"}, {"pace": "nan"}, {"pace": "1e9"},
        {"minutes": "0"}, {"minutes": "x"}, {"minutes": "1e9"}, {"pace": "٣"},
        {"pace": "5", "minutes": "5"},
    ],
)  # fmt: skip
def test_a_pace_that_is_none_is_said_at_the_field(
    dashboard: LiveServer, words: dict[str, str]
) -> None:
    (dead,) = die(dashboard, "no")
    ops = web(dashboard, "admin")
    _, fields = chosen(ops, "action=replay")

    answer = ops.post("/dead-letters/act", **fields, **words)

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert re.search(r'role="alert" id="problem">(Expected|Give)', answer.text)
    assert dashboard.app.get(dead).state is State.DEAD_LETTER


def test_what_was_not_counted_or_is_misspelt_is_refused(dashboard: LiveServer) -> None:
    (dead,) = die(dashboard, "no")
    ops = web(dashboard, "admin")

    for fields, says in (
        ({"action": "discard"}, "Count them first"),
        ({"action": "discard", "finished_before": "2999-01-01T00:00:00Z", "queu": "x"}, "'queu'"),
        ({"action": "burn", "finished_before": "2999-01-01T00:00:00Z"}, "replay or discard"),
        ({"action": "discard", "finished_before": "yesterday"}, "Finished_before"),
    ):
        assert says in ops.said(ops.post("/dead-letters/act", **fields))
    gone = ops.post(
        "/dead-letters/act",
        action="discard",
        group="0" * 16,
        finished_before="2999-01-01T00:00:00Z",
    )
    assert ops.said(gone) == "Nothing fits any more."
    assert dashboard.app.get(dead).state is State.DEAD_LETTER


def test_one_is_replayed_and_only_if_it_is_dead(both: LiveServer) -> None:
    dead, other = die(both, "no", "no")
    ops = web(both, "admin")
    key = key_in(ops.get("/dead-letters").text)

    said = ops.said(ops.post(f"/dead-letters/{key}/{dead}/replay"))
    again = ops.said(ops.post(f"/dead-letters/{key}/{dead}/replay"))

    assert said == f"Task {dead[:13]} starts again as soon as a worker is free."
    assert "replay" in again
    assert both.app.get(dead).state is State.QUEUED
    assert both.app.get(other).state is State.DEAD_LETTER


def test_a_group_that_emptied_says_so(dashboard: LiveServer) -> None:
    page = web(dashboard, "admin").get(f"/dead-letters/{'0' * 16}").text

    assert "This group is empty" in page


def test_an_owners_token_sees_and_replays_its_own(both: LiveServer) -> None:
    (annas,) = die(both, "order 1", owner="anna")
    (bobs,) = die(both, "order 2", owner="bob")
    anna = web(both, "read", "operate", owner="anna")

    page = anna.get("/dead-letters").text
    own = anna.get(f"/dead-letters/{key_in(page)}").text
    asked, fields = chosen(anna, "action=replay")
    foreign = anna.post(f"/dead-letters/{key_in(page)}/{bobs}/replay")
    said = anna.said(anna.post("/dead-letters/act", **fields))

    assert groups(page) == {"order #": "1"}
    assert annas in own
    assert bobs not in own
    assert "Replay 1 task?" in asked
    assert foreign.status_code == 404
    assert said == "1 task starts again."
    assert both.app.get(bobs).state is State.DEAD_LETTER


def test_who_only_reads_or_is_bound_reaches_nothing_of_the_fleet(dashboard: LiveServer) -> None:
    (dead,) = die(dashboard, "no")
    submit(dashboard, "shop.order", customer=1, items=[])
    reader, bound = web(dashboard, "read"), web(dashboard, "read", "operate", owner="anna")

    for path in ("/queues", "/queues/mail", "/gates", "/gates/limit:x", "/workers"):
        page = reader.get(path)
        assert page.status_code == 200, path
        assert "formaction" not in page.text
        assert bound.get(path).status_code == 403, path
        assert bound.get(f"/live{path}", headers={"Accept": "*/*;q=0.1"}).status_code == 403
    for path in (
        "/queues/mail/pause", "/queues/mail/resume", "/queues/mail/limits", "/gates/limit:x/set",
        "/gates/limit:x/unset", "/gates/breaker:x/open", "/gates/breaker:x/close",
        "/workers/anna/drain",
    ):  # fmt: skip
        assert reader.post(path, capacity="1").status_code == 403, path
        assert bound.post(path, capacity="1").status_code == 403, path
    assert reader.post("/dead-letters/act", action="discard").status_code == 403
    assert reader.post(f"/dead-letters/x/{dead}/replay").status_code == 403
    assert reader.get("/dead-letters/confirm?action=discard").status_code == 403
    assert not dashboard.app.limits().limits
    assert not any(each.paused for each in dashboard.app.stats().queues)
