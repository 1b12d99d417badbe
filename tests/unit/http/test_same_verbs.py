"""Whoever knows the local client knows this one."""

from __future__ import annotations

import inspect

import pytest

from holdfast.app import Holdfast
from holdfast.http.client import HttpClient
from holdfast.sync_facade import SyncFacade

FOR_THE_STORE = {"count", "prune", "doctor", "ask_to_drain"}
"""Verbs that the service does not have, or (a drain) under a shorter name."""

VERBS = sorted(
    {name for name in vars(SyncFacade) if f"{name}_async" in vars(SyncFacade)} - FOR_THE_STORE
)


@pytest.mark.parametrize("name", [*VERBS, "submit_many"])
def test_a_verb_has_the_same_words_on_both_clients(name: str) -> None:
    local = inspect.signature(getattr(Holdfast, name)).parameters
    remote = inspect.signature(getattr(HttpClient, name)).parameters

    # A filter as a value and a transaction do not travel; what a look costs is the server's choice.
    own = {"self", "which", "connection", "with_load"}
    assert set(local) - own <= set(remote)


@pytest.mark.parametrize("name", [*VERBS, "submit", "queues", "drain", "result", "events"])
def test_every_verb_is_there_for_sync_and_for_async_code(name: str) -> None:
    sync, twin = getattr(HttpClient, name), getattr(HttpClient, f"{name}_async")

    assert not inspect.iscoroutinefunction(sync)
    assert inspect.iscoroutinefunction(twin) or name == "events"
    assert sync.__doc__
    assert inspect.signature(sync).parameters.keys() == inspect.signature(twin).parameters.keys()
