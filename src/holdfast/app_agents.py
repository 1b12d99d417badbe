"""The budgets and executions of an app: `app.budgets.set(…)`, `await app.budgets.set_async(…)`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from holdfast.agents.budget_book import BudgetBook
from holdfast.agents.executions import Executions
from holdfast.sync_facade import ClientOwner

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")


class _Owned:
    """Verbs of a client that an app has open."""

    def __init__(self, owner: ClientOwner) -> None:
        self.owner = owner


def _both(
    verbs: str, verb: Callable[Concatenate[V, P], Coroutine[Any, Any, R]]
) -> tuple[
    Callable[Concatenate[_Owned, P], R],
    Callable[Concatenate[_Owned, P], Coroutine[Any, Any, R]],
]:
    """The sync and the async face of a verb of `client.<verbs>`."""

    @wraps(verb)
    async def call_async(self: _Owned, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await verb(getattr(await self.owner.verbs(), verbs), *args, **kwargs)

    @wraps(verb)
    def call(self: _Owned, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.owner.wait_for(call_async(self, *args, **kwargs))

    call_async.__name__ = f"{verb.__name__}_async"
    return call, call_async


class AppBudgets(_Owned):
    """Every verb of budgets, for sync and for async code."""

    get, get_async = _both("budgets", BudgetBook.get)
    list, list_async = _both("budgets", BudgetBook.list)
    set, set_async = _both("budgets", BudgetBook.set)
    delete, delete_async = _both("budgets", BudgetBook.delete)


class AppExecutions(_Owned):
    """Every verb of executions, for sync and for async code."""

    get, get_async = _both("executions", Executions.get)
    list, list_async = _both("executions", Executions.list)
