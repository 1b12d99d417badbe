"""Limits, rates, fair shares and breakers: which gates they become, and what is refused."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from holdfast import Breaker, Fair, InvalidOption, Limit, Rate, State
from holdfast.core.gate import UNBOUNDED, Gate, GateKind
from holdfast.core.scope import Scope, in_words
from holdfast.definitions.open import open_call
from holdfast.definitions.options import NO_OPTIONS
from holdfast.testing import MemoryApp


def test_limits_of_a_definition_become_gates_with_its_name(app: MemoryApp) -> None:
    @app.task(
        name="send",
        concurrency=[Limit(50), Limit(5, key="{tenant}")],
        rate=Rate(100, per="1m", key="{tenant}-{day:%Y}"),
        fair_by=Fair("{tenant}", weights={"gold": 3}, window=20),
        breaker=Breaker(),
    )
    def send(tenant: str, day: date = date(2030, 1, 1)) -> None: ...

    assert send.call("gold").gates == (
        Gate(GateKind.LIMIT, "task:send", 50),
        Gate(GateKind.LIMIT, "task:send[gold]", 5),
        Gate(GateKind.RATE, "task:send[gold-2030]", 100, 60.0),
        Gate(GateKind.SHARE, "task:send[gold]", 60),
        Gate(GateKind.BREAKER, "task:send", UNBOUNDED),
    )
    assert send.call("tin").gates[3] == Gate(GateKind.SHARE, "task:send[tin]", 20)


def test_a_number_is_a_limit_and_a_template_a_fair_share(app: MemoryApp) -> None:
    @app.task(name="send", concurrency=2, fair_by="{tenant}")
    def send(tenant: str) -> None: ...

    limit, share = send.call("acme").gates
    assert limit == Gate(GateKind.LIMIT, "task:send", 2)
    assert (share.kind, share.key) == (GateKind.SHARE, "task:send[acme]")


def test_one_with_a_name_is_shared_and_a_function_may_say_no_key(app: MemoryApp) -> None:
    stripe = Limit(5, name="stripe")

    @app.task(name="a", concurrency=stripe)
    def a() -> None: ...

    @app.task(
        name="b",
        concurrency=[stripe, Limit(1, key=lambda user: user or None, name="user")],
    )
    def b(user: str = "") -> None: ...

    assert a.call().gates == b.call().gates == (Gate(GateKind.LIMIT, "stripe", 5),)
    assert b.call("ann").gates[1] == Gate(GateKind.LIMIT, "user[ann]", 1)


def test_tasks_of_a_definition_with_fixed_limits_are_still_made_quickly(app: MemoryApp) -> None:
    @app.task(name="send", concurrency=2)
    def send(n: int) -> None: ...

    assert send.call(1).is_plain
    first, second = app.client.new_tasks([send.call(1), send.call(2)])
    assert first.gates == second.gates == (Gate(GateKind.LIMIT, "task:send", 2),)


def test_a_queues_limits_hold_for_whatever_comes_into_it(app: MemoryApp) -> None:
    app.queue("mail", concurrency=[3, Limit(1, key="{to}", name="box")], fair_by="{owner}")

    @app.task(name="send", concurrency=2)
    def send(to: str) -> None: ...

    ours, elsewhere, theirs = app.client.new_tasks(
        [
            send.options(queue="mail", owner="ann").call("bob"),
            send.call("bob"),
            open_call("render", {"to": 7}, NO_OPTIONS).with_options(queue="mail"),
        ]
    )

    assert [gate.name for gate in ours.gates] == [
        "limit:task:send",
        "limit:queue:mail",
        "limit:box[bob]",
        "share:queue:mail[ann]",
    ]
    assert [gate.name for gate in elsewhere.gates] == ["limit:task:send"]
    assert [gate.name for gate in theirs.gates] == [
        "limit:queue:mail",
        "limit:box[7]",
        "share:queue:mail[-]",
    ]


def test_a_queues_key_may_be_a_function_of_the_arguments(app: MemoryApp) -> None:
    app.queue("default", rate=Rate(1, key=lambda given: given.get("to")))

    @app.task(name="send")
    def send(to: str | None = None) -> None: ...

    with_key, without = app.client.new_tasks([send.call("bob"), send.call()])
    assert [gate.name for gate in with_key.gates] == ["rate:queue:default[bob]"]
    assert without.gates == ()


def test_a_task_that_lacks_what_its_queue_is_limited_by_is_refused(app: MemoryApp) -> None:
    app.queue("default", fair_by="{tenant}")

    @app.task(name="send")
    def send(to: str) -> None: ...

    with pytest.raises(InvalidOption, match=r"names 'tenant', which this task has not"):
        send.submit("bob")
    assert app.count() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"concurrency": 0}, r"Limit\.n: expected a whole number from 1"),
        ({"concurrency": "5"}, r"concurrency: expected a number or Limit\(5"),
        ({"concurrency": []}, r"concurrency: expected at least one"),
        ({"concurrency": True}, r"concurrency: expected a number or Limit"),
        ({"concurrency": Limit(5, key="{tenat}")}, r"Did you mean 'tenant'\?"),
        ({"rate": 5}, r"rate: expected Rate\(100, per='1m'\)"),
        ({"rate": Limit(5)}, r"rate: expected Rate"),
        ({"fair_by": 7}, r"fair_by: expected a template"),
        ({"breaker": True}, r"breaker: expected Breaker\("),
        ({"concurrency": [1, 2]}, r"two of them would be limit:task:send.* `name='per-user'`"),
        (
            {"concurrency": [Limit(1, key="{tenant}"), Limit(2, key="{user}")]},
            r"keys of the one could be keys of the other",
        ),
        ({"name": "a[b]", "concurrency": 1}, r"holds no '\['"),
        ({"rate_limit": "5/m"}, r"is `rate=Rate\(100, per='1m'\)` here"),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_decorator(
    app: MemoryApp, words: dict[str, Any], said: str
) -> None:
    def send(tenant: str, user: str) -> None: ...

    with pytest.raises(InvalidOption, match=said):
        app.task(**{"name": "send", **words})(send)

    assert "send" not in app.registry


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rate(1, per=0), r"Rate\.per: expected more than 0"),
        (lambda: Rate(1, per="soon"), r"Rate\.per: expected a duration"),
        (lambda: Limit(1, name="a:b"), r"Limit\.name: expected a name without ':'"),
        (lambda: Fair("{a}", weights={"gold": 0}), r"Fair\.weights\['gold'\]: expected a number"),
        (lambda: Fair("{a}", window=0), r"Fair\.window: expected a whole number"),
        (lambda: Breaker(failures=1.5), r"Breaker\.failures: expected a share"),
        (lambda: Breaker(at_least=0), r"Breaker\.at_least: expected"),
        (lambda: Breaker(cool_down=0), r"Breaker\.cool_down: expected more"),
    ],
)
def test_a_bad_value_is_refused_where_it_is_written(make: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        make()


def test_an_unknown_word_of_a_queue_is_refused(app: MemoryApp) -> None:
    with pytest.raises(InvalidOption, match=r"concurency: no such option.*'concurrency'"):
        app.queue("mail", concurency=3)  # type: ignore[call-arg] # the point


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("limit:task:send", "limit of task 'send'"),
        ("rate:queue:mail[a[b]]", "rate of queue 'mail' for 'a[b]'"),
        ("share:stripe[acme]", "share 'stripe' for 'acme'"),
        ("breaker:stripe", "breaker 'stripe'"),
        ("limit:callback 10.0.0.1", "limit 'callback 10.0.0.1'"),
    ],
)
def test_a_gate_is_shown_as_it_was_written(name: str, words: str) -> None:
    assert in_words(name) == words
    assert str(Scope.parse(name.partition(":")[2])) == name.partition(":")[2]


def test_why_names_the_limit_as_it_was_written(app: MemoryApp) -> None:
    @app.task(name="send", concurrency=Limit(1, key="{tenant}"))
    def send(tenant: str) -> None: ...

    send.submit("acme")
    waiting = send.submit("acme")

    assert waiting.status() is State.BLOCKED
    assert app.why(waiting).sentence.startswith(
        "Its limit of task 'send' for 'acme' is used up: 1 of"
    )
