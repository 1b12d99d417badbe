"""Tokens: made, listed and revoked by those who may do everything. A secret is shown once: on the
page that answers the form, and nowhere else ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from starlette.datastructures import QueryParams

from holdfast.core.task import Json, Priority
from holdfast.core.token import Scope, Token
from holdfast.dashboard.page import ADMIN, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.problems import NONE, Problems, problems_of
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.server.models.tokens import NewToken
from holdfast.server.problems import Refused
from holdfast.server.shape import Shape

page = Page("/settings/tokens", "tokens.html", "Tokens", rule=ADMIN, is_live=False)
revoking = Page(
    "/settings/tokens/{token_id}/revoke", "sure.html", "Revoke", rule=ADMIN, is_live=False
)

NEW: Final = Shape(NewToken)
DAY: Final = 86_400
MOST: Final = 100
SCOPES: Final = {
    Scope.READ.value: "look at everything within its bounds",
    Scope.SUBMIT.value: "submit tasks, make schedules",
    Scope.OPERATE.value: "steer the tasks of others",
    Scope.WORKER.value: "do the work of its queues over HTTP",
    Scope.ADMIN.value: "do everything, make tokens too",
}
TEXTS: Final = ("name", "expires_in_days", "owner", "queues", "task_types", "max_priority", "rate")
FIELDS: Final = (*TEXTS, "scopes")
NAMES: Final = {"expires_in_seconds": "expires_in_days", "names": "task_types",
                "expires": "expires_in_days"}  # fmt: skip


@page.read
async def read(view: View) -> Shown:
    return await _shown(view, QueryParams({"scopes": "read"}))


@page.action("/settings/tokens", rule=ADMIN)
async def make(form: Form) -> Again:
    client = await form.verbs()
    try:
        wanted = NEW.read(_body(form.words))
        made, text = await client.tokens.create(
            wanted["name"],
            frozenset(map(Scope, wanted["scopes"])),
            wanted.get("expires_in_seconds"),
            created_by=form.token.id,
            owner=wanted.get("owner"),
            queues=wanted.get("queues"),
            names=wanted.get("task_types"),
            max_priority=wanted.get("max_priority"),
            rate=wanted.get("rate"),
        )
    except (HoldfastError, Refused) as error:
        return Again(shown=await _shown(form, form.words, problems_of(error, FIELDS, NAMES)))
    empty = QueryParams({"scopes": "read"})
    return Again(shown=await _shown(form, empty) | {"made": made, "secret": text, "status": 201})


@revoking.read
async def ask(view: View) -> Shown:
    token = await _one(view)
    called = token.name or token.id
    itself = " You are logged in with it: you will be logged out." if _is_own(view, token) else ""
    return {
        "title": f"Revoke {called}",
        "heading": f"Revoke the token {called}?",
        "says": f"Whoever uses it is let in no more, from now on and for ever.{itself}",
        "action": f"/settings/tokens/{token.id}/revoke",
        "fields": {},
        "button": "Revoke the token",
        "back": "/settings/tokens",
    }


@revoking.action("/settings/tokens/{token_id}/revoke", rule=ADMIN, back="/settings/tokens")
async def revoke(form: Form) -> Done:
    token = await _one(form)
    await (await form.verbs()).tokens.revoke(token.id)
    says = f"The token {token.name or token.id} is revoked."
    return Done(to=form.url("/settings/tokens"), says=says)


async def _one(view: View) -> Token:
    """A token that holds."""
    token = await (await view.verbs()).tokens.get(view.params["token_id"])
    if token is None:
        raise Refused(404, "token_not_found", "no token with this id holds")
    return token


def _is_own(view: View, token: Token) -> bool:
    return token.id == view.token.id


async def _shown(view: View, words: QueryParams, problems: Problems = NONE) -> Shown:
    client = await view.verbs()
    tokens, now = await client.tokens.list(), await client.now()
    return {
        "tokens": sorted(tokens, key=lambda each: not each.is_valid(now))[:MOST],
        "left_out": max(0, len(tokens) - MOST),
        "standing": {each.id: _standing(each, now) for each in tokens},
        "texts": {name: words.get(name, "") for name in TEXTS},
        "chosen": words.getlist("scopes"),
        "scopes": SCOPES,
        "priorities": [each.value for each in Priority],
        "problems": problems,
        "made": None,
        "secret": None,
    }


def _standing(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "good" if token.is_valid(now) else "expired"


def _body(words: QueryParams) -> dict[str, Json]:
    """The body of the API's own request."""
    texts: Mapping[str, str] = {name: words.get(name, "").strip() for name in TEXTS}
    body: dict[str, Any] = {name: text for name, text in texts.items() if text}
    body |= {name: _list(texts[name]) for name in ("queues", "task_types") if texts[name]}
    days = body.pop("expires_in_days", None)
    if days is not None:
        body["expires_in_seconds"] = _days(days) * DAY
    return {"name": "", **body, "scopes": words.getlist("scopes")}


def _list(text: str) -> Sequence[str]:
    return [each.strip() for each in text.replace("\n", ",").split(",") if each.strip()]


def _days(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        said = f"expected a number of days, got {text[:40]!r}"
        raise InvalidOption("expires_in_days", said) from None
