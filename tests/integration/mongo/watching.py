"""What a store says to its server, and how the server would look for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from pymongo import monitoring
from pymongo.asynchronous.database import AsyncDatabase

from holdfast.stores.mongo import connections

Document = dict[str, Any]
QUIET = frozenset({"hello", "ismaster", "endsessions", "ping"})


class Watch(monitoring.CommandListener):
    """Remembers the commands of every client that is made while it is installed."""

    def __init__(self) -> None:
        self.commands: list[Document] = []

    @classmethod
    def install(cls, monkeypatch: pytest.MonkeyPatch) -> Watch:
        watch = cls()
        monkeypatch.setitem(connections._DEFAULTS, "event_listeners", [watch])
        return watch

    @contextmanager
    def over(self) -> Iterator[list[Document]]:
        """The commands of the block, filled while it lasts."""
        seen: list[Document] = []
        self.commands = seen
        yield seen
        self.commands = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name.lower() not in QUIET:
            self.commands.append(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


def name_of(command: Mapping[str, Any]) -> str:
    return next(iter(command))


def searches(command: Document) -> Iterator[Document]:
    """Every search of documents in a command, as a `find` that looks for the same."""
    name = name_of(command)
    collection = command[name]
    match name:
        case "find":
            kept = ("find", "filter", "sort", "limit", "projection")
            yield {key: command[key] for key in kept if key in command}
        case "aggregate":
            yield from _of_pipeline(collection, command["pipeline"])
        case "update":
            yield from ({"find": collection, "filter": one["q"]} for one in command["updates"])
        case "delete":
            yield from ({"find": collection, "filter": one["q"]} for one in command["deletes"])
        case "findAndModify":
            yield {"find": collection, "filter": command["query"]}


def _of_pipeline(collection: object, pipeline: list[Document]) -> Iterator[Document]:
    if not isinstance(collection, str) or "$match" not in pipeline[0]:
        return
    search: Document = {"find": collection, "filter": pipeline[0]["$match"]}
    for stage in pipeline[1:]:
        if "$sort" in stage:
            search["sort"] = stage["$sort"]
        if "$unionWith" in stage:
            union = stage["$unionWith"]
            yield from _of_pipeline(union["coll"], union["pipeline"])
    yield search


async def explain(database: AsyncDatabase[Document], search: Document) -> Document:
    """How the server finds it, with what that takes."""
    return await database.command("explain", search, verbosity="executionStats")


async def walks(database: AsyncDatabase[Document], search: Document) -> bool:
    """Whether no index narrows the search.

    MongoDB takes an index for any clause and filters by the others. The test server does so too,
    but its `explain` knows only filters that one index serves as a whole: there each clause is
    asked for alone. What only says "not that" narrows nothing.
    """
    filters = [search["filter"], *({name: is_} for name, is_ in search["filter"].items())]
    for each in filters:
        if not _is_exclusion(each):
            plan = await explain(database, {"find": search["find"], "filter": each})
            if "COLLSCAN" not in stages(plan["queryPlanner"]["winningPlan"]):
                return False
    return True


def _is_exclusion(where: Document) -> bool:
    return all(isinstance(is_, dict) and set(is_) == {"$ne"} for is_ in where.values())


def stages(plan: object) -> Iterator[str]:
    """The names of all stages of a plan."""
    if isinstance(plan, dict):
        if isinstance(plan.get("stage"), str):
            yield plan["stage"]
        for part in plan.values():
            yield from stages(part)
    elif isinstance(plan, list):
        for part in plan:
            yield from stages(part)
