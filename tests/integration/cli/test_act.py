"""Commands that change something."""

from __future__ import annotations

import json
import time

from tests.integration.cli.conftest import Shell

from holdfast.core.trace import EXAMPLE


def test_submit_prints_the_id_for_people_and_the_outcome_for_machines(fresh: Shell) -> None:
    text = fresh.run("submit", "shop:app", "send_mail", '{"to": "ann"}')
    data = fresh.ok("submit", "shop:app", "shop.send_mail", '{"to": "ann"}')

    assert text.code == 0
    assert len(text.out.strip()) == 36
    members = {"task_id", "status", "queue_position", "outcome", "existing", "trace_id"}
    assert set(data) == members
    assert (data["existing"], data["status"], data["queue_position"]) == (False, "queued", 2)


def test_submit_reads_arguments_from_standard_input(fresh: Shell) -> None:
    ran = fresh.run("submit", "shop:app", "send_mail", "-", "--json", stdin='{"to": "ann"}')

    assert fresh.ok("task", "get", ran.json["task_id"])["parameters"]["to"] == "ann"


def test_submit_passes_every_option_on(fresh: Shell) -> None:
    task_id = fresh.submit(
        "send_mail", {"to": "ann"}, "--traceparent", EXAMPLE,
        "--queue", "night", "--priority", "medium", "--delay", "10m", "--expires", "1h",
        "--tag", "a", "--tag", "b", "--owner", "ann", "--max-retries", "7", "--timeout", "90",
        "--unique-key", "k",
    )  # fmt: skip

    task = fresh.ok("task", "get", task_id)

    assert (task["queue"], task["priority"], task["owner"]) == ("night", "normal", "ann")
    assert (task["max_retries"], task["timeout_seconds"]) == (7, 90.0)
    assert (task["tags"], task["unique_key"]) == (["mail", "a", "b"], "k")
    assert task["created_at"] < task["run_at"] < task["expires_at"]
    assert task["trace_id"] == EXAMPLE[3:35]


def test_submit_may_come_after_other_tasks(fresh: Shell) -> None:
    first, second = (fresh.submit("send_mail", {"to": to}) for to in ("ann", "bob"))

    last = fresh.submit(
        "send_mail", {"to": "cid"}, "--after", first, "--after", second, "--when", "always"
    )
    wrong = fresh.run("submit", "shop:app", "send_mail", '{"to": "x"}', "--after", "soon")

    assert fresh.ok("task", "get", last)["status"] == "blocked"
    assert "waits for other tasks" in fresh.run("task", "list").out
    assert fresh.ok("task", "tree", last)["task_id"] == last
    assert wrong.code != 0
    assert "expected a handle or the id of a task" in wrong.err


def test_a_submit_that_is_debounced_or_throttled_says_so(fresh: Shell) -> None:
    first, second = (fresh.ok("submit", "shop:app", "reindex", '{"doc": 1}') for _ in range(2))
    kept, again = (fresh.ok("submit", "shop:app", "report", "{}") for _ in range(2))
    text = fresh.run("submit", "shop:app", "report", "{}").out

    assert (first["outcome"], second["outcome"], second["existing"]) == (
        "created", "debounced", False,
    )  # fmt: skip
    assert fresh.ok("task", "get", first["task_id"])["reason"] == "superseded"
    assert (again["outcome"], again["existing"]) == ("throttled", True)
    assert again["task_id"] == kept["task_id"]
    assert "was there already (throttled)" in text


def test_a_second_submit_of_a_unique_key_says_that_the_first_is_there(fresh: Shell) -> None:
    first = fresh.submit("send_mail", {"to": "ann"}, "--unique-key", "only")

    again = fresh.ok("submit", "shop:app", "send_mail", '{"to": "bob"}', "--unique-key", "only")
    text = fresh.run("submit", "shop:app", "send_mail", '{"to": "c"}', "--unique-key", "only").out

    assert (again["task_id"], again["existing_by"]) == (first, "unique_key")
    assert "was there already (unique key)" in text


def test_submit_can_wait_for_the_result(fresh: Shell) -> None:
    worker = fresh.start("worker", "shop:app")
    try:
        good = fresh.run("submit", "shop:app", "send_mail", '{"to": "ann"}', "--wait", "30s")
        bad = fresh.run("submit", "shop:app", "bill", '{"customer": "x"}', "--wait", "30s")
    finally:
        worker.terminate()
        code = worker.wait(30)

    assert (good.code, good.out) == (0, '"1 to ann"\n')
    assert bad.code == 1
    assert "is dead_letter: ValueError: no customer 'x'" in bad.out
    assert code == 0


def test_a_wait_that_is_too_short_is_exit_code_1(fresh: Shell) -> None:
    ran = fresh.run("submit", "shop:app", "send_mail", '{"to": "a"}', "--wait", "50ms", "--json")

    assert ran.code == 1
    assert ran.error["code"] == "result_timeout"


def test_cancel_ends_a_waiting_task_refuses_an_ended_one_and_retry_starts_it_again(
    fresh: Shell,
) -> None:
    task_id = fresh.submit("send_mail", {"to": "ann"})

    first = fresh.ok("task", "cancel", task_id)
    second = fresh.run("task", "cancel", task_id, "--json")
    text = fresh.run("task", "retry", task_id)

    assert first["tasks"][0]["status"] == "cancelled"
    assert second.code == 1
    assert second.error["code"] == "invalid_transition"
    assert (text.code, text.out) == (0, f"{task_id} is queued again.\n")
    assert fresh.ok("task", "get", task_id)["cause"] == "operator"


def test_dead_letters_are_counted_asked_about_discarded_and_replayed(fresh: Shell) -> None:
    gone, *kept = (fresh.submit("bill", {"customer": name}) for name in "abc")
    fresh.work()

    listed = {task["task_id"] for task in fresh.ok("dead", "list", "--name", "shop.bill")["tasks"]}
    dry = fresh.ok("dead", "replay", "--all", "--dry-run")
    unasked = fresh.run("dead", "replay", "--all", "--json")
    unchosen = [fresh.run("dead", command, "--yes") for command in ("replay", "discard")]
    discarded = fresh.run("dead", "discard", gone, "--yes")
    replayed = fresh.ok("dead", "replay", "--name", "shop.bill", "--pace", "2/m", "--yes")

    assert listed == {gone, *kept}
    assert dry == {"action": "replay", "dry_run": True, "tasks": 3}
    assert (unasked.code, unasked.error["code"]) == (2, "not_confirmed")
    assert [(ran.code, "--all" in ran.err) for ran in unchosen] == [(2, True)] * 2
    assert (discarded.code, discarded.out) == (0, "Discarded 1 task.\n")
    assert replayed == {"action": "replay", "dry_run": False, "tasks": 2}
    left = {task["task_id"]: task["run_at"] for task in fresh.ok("task", "list")["tasks"]}
    assert left.keys() == set(kept)
    assert len(set(left.values())) == 2
    nothing = fresh.run("dead", "replay", "--all", "--yes")
    assert (nothing.code, nothing.out) == (0, "No dead letter matches.\n")


def test_a_paused_queue_holds_its_tasks_until_resumed(fresh: Shell) -> None:
    task_id = fresh.submit("send_mail", {"to": "ann"})

    paused = fresh.ok("queue", "pause", "default")
    again = fresh.ok("queue", "pause", "default")
    fresh.work()
    held = fresh.ok("task", "why", task_id)
    listed = fresh.ok("queue", "list")["queues"]
    resumed = fresh.ok("queue", "resume", "default")
    fresh.work()

    assert (paused["changed"], again["changed"]) == (True, False)
    assert "queue_paused" in [reason["code"] for reason in held["reasons"]]
    assert [(queue["queue"], queue["paused"]) for queue in listed] == [("default", True)]
    assert resumed == {"queue": "default", "paused": False, "changed": True, "known": True}
    assert fresh.ok("task", "get", task_id)["status"] == "completed"


def test_limits_are_listed_shown_set_and_taken_back(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})
    name = "limit:stripe[acme/eu]"

    nothing = fresh.run("limit", "list")
    absent = fresh.run("limit", "show", name)
    done = fresh.ok("limit", "set", name, "10")
    again = fresh.run("limit", "set", name, "10")
    shown = fresh.ok("limit", "show", name)
    listed = fresh.run("limit", "list")
    undone = fresh.run("limit", "unset", name)
    opened = fresh.run("limit", "set", "breaker:stripe", "open")
    wrong = fresh.run("limit", "set", "stripe", "5")

    assert nothing.out == "No limit is in use, and none is set.\n"
    assert (absent.code, "nobody has set it" in absent.err) == (1, True)
    assert done == {"name": name, "capacity": 10, "state": None, "changed": True, "known": False}
    assert again.out == "The limit 'stripe' for 'acme/eu' lets 10 pass already.\n"
    assert (shown["capacity"], shown["set"], shown["holders"]) == (10, True, [])
    assert name in listed.out
    assert undone.out == "The limit 'stripe' for 'acme/eu' is as tasks say again.\n"
    assert opened.out.startswith("The breaker 'stripe' is open from now on.")
    assert (wrong.code, "limit:task:send[acme]" in wrong.err) == (2, True)


def test_pausing_a_name_that_nothing_has_is_done_and_said(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})

    told = fresh.run("queue", "pause", "defautl")
    listed = fresh.ok("queue", "list")["queues"]

    assert told.code == 0
    assert told.out.startswith("Queue 'defautl' is paused. Nothing has this name yet")
    assert {queue["queue"]: queue["paused"] for queue in listed}["defautl"] is True
    assert fresh.ok("queue", "pause", "default")["known"] is True
    assert fresh.ok("queue", "resume", "defautl")["known"] is False


def test_watching_a_task_follows_it_to_its_end(fresh: Shell) -> None:
    task_id = fresh.submit("steps", {"seconds": 2})
    worker = fresh.start("worker", "shop:app", "-q", "steps", "--burst")

    ran = fresh.run("task", "get", task_id, "--watch", "--json")

    assert worker.wait(30) == 0
    seen = [json.loads(line) for line in ran.out.splitlines()]
    assert seen[-1]["status"] == "completed"
    assert any(0 < (task["progress"] or {"done": 0})["done"] < 4 for task in seen)


def test_a_worker_serves_only_the_queues_it_was_told(fresh: Shell) -> None:
    mine = fresh.submit("send_mail", {"to": "ann"}, "--queue", "mine")
    other = fresh.submit("send_mail", {"to": "bob"}, "--queue", "other")

    fresh.work("-q", "mine", "-c", "2", "--processes", "2", "--capability", "gpu", "--lease", "5s")

    assert fresh.ok("task", "get", mine)["status"] == "completed"
    assert fresh.ok("task", "get", other)["status"] == "queued"
    workers = fresh.ok("workers", "--all")["workers"]
    assert {worker["capacity"] for worker in workers} == {2}
    assert {tuple(worker["capabilities"]) for worker in workers} == {("gpu",)}


def test_a_worker_can_be_asked_to_drain_if_it_is_there(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})
    nobody = fresh.run("drain", "nobody", "--json")
    worker = fresh.start("worker", "shop:app")
    try:
        deadline = time.monotonic() + 30
        while not (known := fresh.ok("workers")["workers"]):
            assert time.monotonic() < deadline
        asked = fresh.ok("drain", known[0]["worker_id"])
        code = worker.wait(30)
    finally:
        worker.kill()

    assert (nobody.code, nobody.error["code"]) == (1, "worker_not_found")
    assert asked == {"worker_id": known[0]["worker_id"], "drain_requested": True}
    assert code == 0


def test_tasks_are_cancelled_retried_and_forgotten_by_filter(fresh: Shell) -> None:
    for to in ("ann", "bob"):
        fresh.submit("send_mail", {"to": to}, "--delay", "1h", "--tag", "batch=1")
    kept = fresh.submit("send_mail", {"to": "eve"}, "--delay", "1h")
    by_tag = ("--tag", "batch=1")

    unasked = fresh.run("task", "cancel", *by_tag, "--json")
    assert (unasked.code, "Cancel 2 tasks?" in unasked.error["message"]) == (2, True)
    assert fresh.ok("task", "cancel", *by_tag, "--dry-run")["tasks"] == 2
    assert fresh.ok("task", "cancel", *by_tag, "--yes") == {
        "action": "cancel",
        "dry_run": False,
        "tasks": 2,
    }

    assert fresh.run("task", "retry", *by_tag).out == "No task matches.\n"
    again = ("task", "retry", *by_tag, "--state", "cancelled", "--yes")
    assert fresh.ok(*again) == {"action": "retry", "dry_run": False, "tasks": 2}
    assert fresh.ok("task", "discard", *by_tag, "--dry-run")["tasks"] == 0

    fresh.ok("task", "cancel", *by_tag, "--yes")
    assert fresh.run("task", "discard", *by_tag, "--yes").out == "Discarded 2 tasks.\n"
    assert [task["task_id"] for task in fresh.ok("task", "list")["tasks"]] == [kept]


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(fresh: Shell) -> None:
    first = fresh.submit("send_mail", {"to": "ann"}, "--idempotency-key", "mail-1")
    second = fresh.submit("send_mail", {"to": "bob"})
    # Ids of one second share eight characters and more; the last are random.
    short = first[:30].replace("-", "").upper()

    assert fresh.ok("task", "get", short)["task_id"] == first
    assert fresh.ok("task", "get", "--key", "mail-1")["task_id"] == first
    both = fresh.run("task", "why", first[:9])
    assert (both.code, first in both.err, second in both.err) == (2, True, True)
    assert fresh.run("task", "why", "ffffffff").code == 1
    assert fresh.ok("task", "cancel", short)["tasks"][0]["task_id"] == first


def test_tasks_are_found_by_when_they_ended(fresh: Shell) -> None:
    done = fresh.submit("send_mail", {"to": "ann"})
    fresh.submit("send_mail", {"to": "bob"}, "--delay", "1h")
    fresh.work()
    ended_at = fresh.ok("task", "get", done)["finished_at"]

    def found(*options: str) -> list[str]:
        return [task["task_id"] for task in fresh.ok("task", "list", *options)["tasks"]]

    assert found("--ended-after", "1h") == [done]
    assert found("--ended-after", ended_at) == [done]
    assert found("--ended-before", "1h") == found("--ended-before", ended_at) == []
