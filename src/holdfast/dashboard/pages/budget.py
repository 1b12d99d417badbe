"""Setting a budget, changing it, taking it away: for those who may steer everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.agents.budgets import OWNER, SCHEDULE
from holdfast.core.budget_state import BudgetState, PeriodState
from holdfast.core.task import Json
from holdfast.dashboard.page import STEER_ALL, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.problems import NONE, Problems, problems_of
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.server.agent_reach import checked_key, no_budget
from holdfast.server.models.agents import NewBudget
from holdfast.server.problems import Refused
from holdfast.server.shape import Shape

page = Page("/usage/budget", "budget.html", "Budget", rule=STEER_ALL, is_live=False)
gone = Page("/usage/budget/delete", "sure.html", "Delete", rule=STEER_ALL, is_live=False)

SET: Final = Shape(NewBudget)
LIMITS: Final = {"runs": "Runs", "units": "Units", "tokens": "Tokens", "cost": "Money"}
PERIODS: Final = {"day": "A day", "month": "A month"}
WHOSE: Final = {OWNER: "an owner", SCHEDULE: "a schedule"}
FIELDS: Final = (
    "whose", "name", "zone", *(f"{period}.{limit}" for period in PERIODS for limit in LIMITS)
)  # fmt: skip

NAMES: Final = {"key": "name", "task_type": "name"}
"""Elsewhere `name` is a task's, and told as its type."""

Texts = Mapping[str, str]


@page.read
async def read(view: View) -> Shown:
    key = view.query.get("key", "")
    if not key:
        whose = view.query.get("whose", OWNER)
        return _shown({"whose": whose, "name": view.query.get("name", "")}, is_new=True)
    return _shown(_texts(await (await view.agents()).budget(checked_key(key))), is_new=False)


@page.action("/usage/budget", rule=STEER_ALL)
async def save(form: Form) -> Done | Again:
    texts = {name: form.words.get(name, "").strip() for name in FIELDS}
    is_new = form.words.get("is_new") == "yes"
    try:
        key = await _key(form, texts, is_new=is_new)
        wanted = SET.read(_body(texts))
        budgets = (await form.verbs()).budgets
        await budgets.set(
            key, day=wanted.get("day", {}), month=wanted.get("month", {}), zone=wanted.get("zone")
        )
    except (HoldfastError, Refused) as error:
        problems = problems_of(error, FIELDS, NAMES)
        return Again(shown=_shown(texts, is_new=is_new, problems=problems))
    return Done(to=form.url("/usage"), says=f"The budget {key} holds from now on.")


@gone.read
async def read_gone(view: View) -> Shown:
    state = await (await view.agents()).budget(checked_key(view.query.get("key", "")))
    return {
        "title": f"Delete the budget {state.key}",
        "heading": f"Delete the budget {state.key}?",
        "says": "Its runs are bounded no more, and what was used of it is forgotten.",
        "action": "/usage/budget/delete",
        "fields": {"key": state.key},
        "button": "Delete the budget",
        "back": "/usage",
    }


@gone.action("/usage/budget/delete", rule=STEER_ALL, back="/usage")
async def delete(form: Form) -> Done:
    key = checked_key(form.words.get("key", ""))
    if not await (await form.verbs()).budgets.delete(key):
        raise no_budget(key)
    return Done(to=form.url("/usage"), says=f"The budget {key} is gone.")


async def _key(form: Form, texts: Texts, *, is_new: bool) -> str:
    if texts["whose"] not in WHOSE:
        raise InvalidOption("whose", f"expected {' or '.join(WHOSE)}")
    if not texts["name"]:
        raise InvalidOption("name", "expected the name of an owner or a schedule")
    key = f"{texts['whose']}{texts['name']}"
    try:
        checked_key(key)
    except Refused as refused:
        raise InvalidOption("name", refused.detail.removeprefix("key: ")) from None
    if is_new and await (await form.verbs()).budgets.get(key) is not None:
        raise InvalidOption("name", "there is a budget for it already; change that one")
    return key


def _body(texts: Texts) -> dict[str, Json]:
    body: dict[str, Json] = {
        period: {limit: _number(f"{period}.{limit}", texts[f"{period}.{limit}"])
                 for limit in LIMITS if texts[f"{period}.{limit}"]}
        for period in PERIODS
    }  # fmt: skip
    return body | ({"zone": texts["zone"]} if texts["zone"] else {})


def _number(field: str, text: str) -> float | int:
    plain = text.replace(",", "")
    try:
        return int(plain) if plain.isascii() and plain.isdecimal() else float(plain)
    except ValueError:
        raise InvalidOption(field, f"expected a number from 0, got {text[:40]!r}") from None


def _texts(state: BudgetState) -> dict[str, str]:
    whose, _, name = state.key.partition(":")
    texts = {"whose": f"{whose}:", "name": name, "zone": state.zone}
    for period in PERIODS:
        told: PeriodState = getattr(state, period)
        limits: dict[str, Any] = {limit: getattr(told, limit) for limit in LIMITS}
        texts |= {
            f"{period}.{limit}": f"{value:.15g}"
            for limit, value in limits.items()
            if value is not None
        }
    return texts


def _shown(texts: Texts, *, is_new: bool, problems: Problems = NONE) -> Shown:
    return {
        "texts": {name: texts.get(name, "") for name in FIELDS},
        "is_new": is_new,
        "problems": problems,
        "limits": LIMITS,
        "periods": PERIODS,
        "whose": WHOSE,
    }
