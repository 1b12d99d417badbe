"""What a filter becomes as a query."""

from __future__ import annotations

import pytest

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.stores.mongo.filters import BY_ID, hint_of, query_of
from holdfast.testing.factories import task_id

NOBODY: dict[str, object] = {"_id": {"$in": []}}


def test_an_empty_filter_leaves_nothing_out() -> None:
    assert query_of(TaskFilter()) == {}


def test_the_clause_that_narrows_most_comes_first() -> None:
    wanted = TaskFilter(ids=(task_id(),), queue="mail", states=frozenset({State.FAILED}))

    assert list(query_of(wanted)) == ["_id", "queue", "state"]


def test_ids_and_a_cursor_meet_in_one_clause() -> None:
    first, second = sorted((task_id(), task_id()))

    assert query_of(TaskFilter(ids=(second, first, TaskId("nope"))), after=first)["_id"] == {
        "$in": [first, second],
        "$gt": first,
    }


def test_states_of_the_filter_and_of_the_verb_must_both_hold() -> None:
    asked = TaskFilter(states=frozenset({State.FAILED, State.RUNNING}))

    assert query_of(asked, states=frozenset({State.FAILED}))["state"] == "failed"
    assert query_of(asked, states=frozenset({State.QUEUED}))["state"] == {"$in": []}


@pytest.mark.parametrize("field", ["name", "name_prefix", "queue", "tag", "owner", "lock"])
def test_text_that_cannot_be_there_finds_nobody(field: str) -> None:
    assert query_of(TaskFilter(**{field: "lone\ud800surrogate"})) == NOBODY  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prefix", "clause"),
    [
        ("mail.", {"$gte": "mail.", "$lt": "mail/"}),
        ("é", {"$gte": "é", "$lt": "ê"}),
        ("a\ud7ff", {"$gte": "a\ud7ff", "$lt": "a\ue000"}),
        ("a\U0010ffff", {"$gte": "a\U0010ffff", "$lt": "b"}),
        ("\U0010ffff", {"$gte": "\U0010ffff"}),
        ("", {"$gte": ""}),
    ],
)
def test_a_prefix_is_a_range_that_ends_before_the_next(prefix: str, clause: dict[str, str]) -> None:
    assert query_of(TaskFilter(name_prefix=prefix))["name"] == clause


def test_a_list_without_a_clause_for_an_index_walks_by_id() -> None:
    assert hint_of(query_of(TaskFilter(queue="mail"))) == BY_ID
    assert hint_of(query_of(TaskFilter(queue="mail"), before=task_id())) == BY_ID
    assert hint_of(query_of(TaskFilter(states=frozenset({State.FAILED})))) is None
    assert hint_of(query_of(TaskFilter(ids=(task_id(),)))) is None
