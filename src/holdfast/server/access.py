"""Who may call what: one table, and a door that opens for nothing that is not in it.

The door stands before the router. A path that the table does not know is not there (404) and a
method it does not know is not allowed (405), whatever the router may have; so a route that somebody
forgets to enter here is closed, not open. Both are told only to those who have a token.

`/api/tasks` is another name of `/api/v1/tasks`, and so on, for clients that name no version.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Request

from holdfast.core.token import Scope, Token
from holdfast.server.brake import Brake
from holdfast.server.problems import Refused
from holdfast.server.revoking import Good, Revoking

ALIAS: Final = "/api/"
PREFIX: Final = "/api/v1/"
TASKS: Final = f"{PREFIX}tasks"
SCHEDULES: Final = f"{PREFIX}schedules"
ASSISTANT: Final = f"{PREFIX}assistant"
INBOX: Final = f"{PREFIX}inbox"
EXECUTIONS: Final = f"{PREFIX}executions"
BUDGETS: Final = f"{PREFIX}budgets"
USED: Final = f"{PREFIX}usage"


class WhenBound(StrEnum):
    """What a route does for a token that is bound to an owner, queues or task names."""

    OWN = "own"
    """It goes through `reach`: for such a token no other task is there."""
    SAME = "same"
    """It is about no task: the same as for everybody."""
    REFUSED = "refused"
    """It is about the whole store: 403."""


class Rule(NamedTuple):
    """Who may come in: a token with one of these scopes, and `admin`, which may do everything."""

    scopes: tuple[Scope, ...]
    bound: WhenBound

    def __str__(self) -> str:
        return " or ".join(f"`{scope}`" for scope in self.scopes)


_READ: Final = Rule((Scope.READ,), WhenBound.OWN)
_SUBMIT: Final = Rule((Scope.SUBMIT,), WhenBound.OWN)
_STEER_ONE: Final = Rule((Scope.SUBMIT, Scope.OPERATE), WhenBound.OWN)
_TRY: Final = Rule((Scope.READ, Scope.SUBMIT), WhenBound.SAME)
_STEER: Final = Rule((Scope.OPERATE,), WhenBound.OWN)
_READ_ALL: Final = Rule((Scope.READ,), WhenBound.REFUSED)
_SUBMIT_ALL: Final = Rule((Scope.SUBMIT,), WhenBound.REFUSED)
_STEER_ALL: Final = Rule((Scope.OPERATE,), WhenBound.REFUSED)
_ADMIN: Final = Rule((Scope.ADMIN,), WhenBound.REFUSED)
_WORKER: Final = Rule((Scope.WORKER,), WhenBound.OWN)

TABLE: Final[Mapping[str, Mapping[str, Rule | None]]] = {
    "/healthz": {"GET": None},
    "/readyz": {"GET": None},
    "/v1/tasks/execute": {"POST": None},  # by what it is signed with (`server.timer_calls`)
    "/unsubscribe": {"GET": None, "POST": None},  # likewise (`delivery.unsubscribing`)
    "/metrics": {"GET": _READ_ALL},
    "/openapi.json": {"GET": Rule((Scope.READ,), WhenBound.SAME)},
    TASKS: {"GET": _READ, "POST": _SUBMIT},
    f"{TASKS}/actions": {"POST": _STEER},
    f"{TASKS}/{{task_id}}": {"GET": _READ, "DELETE": _STEER_ONE},
    f"{TASKS}/{{task_id}}/cancel": {"POST": _STEER_ONE},
    f"{TASKS}/{{task_id}}/retry": {"POST": _STEER_ONE},
    f"{TASKS}/{{task_id}}/attempts": {"GET": _READ},
    f"{TASKS}/{{task_id}}/events": {"GET": _READ},
    f"{TASKS}/{{task_id}}/children": {"GET": _READ},
    f"{TASKS}/{{task_id}}/tree": {"GET": _READ},
    f"{TASKS}/{{task_id}}/why": {"GET": _READ},
    "/api/v1/queue/stats": {"GET": _READ_ALL},
    "/api/v1/queues": {"GET": _READ_ALL},
    "/api/v1/queues/{queue}/pause": {"POST": _STEER_ALL},
    "/api/v1/queues/{queue}/resume": {"POST": _STEER_ALL},
    "/api/v1/limits": {"GET": _READ_ALL},
    "/api/v1/limits/{limit:path}": {"GET": _READ_ALL, "PUT": _STEER_ALL, "DELETE": _STEER_ALL},
    SCHEDULES: {"GET": _READ, "POST": _SUBMIT},
    f"{SCHEDULES}/calendar.ics": {"GET": _READ},
    f"{SCHEDULES}/import": {"POST": _SUBMIT},
    f"{SCHEDULES}/preview": {"POST": _TRY},
    f"{SCHEDULES}/{{schedule}}": {"GET": _READ, "PATCH": _STEER, "DELETE": _STEER},
    f"{SCHEDULES}/{{schedule}}/pause": {"POST": _STEER},
    f"{SCHEDULES}/{{schedule}}/resume": {"POST": _STEER},
    f"{SCHEDULES}/{{schedule}}/skip": {"POST": _STEER},
    f"{SCHEDULES}/{{schedule}}/trigger": {"POST": _SUBMIT},
    f"{SCHEDULES}/{{schedule}}/backfill": {"POST": _SUBMIT},
    f"{SCHEDULES}/{{schedule}}/runs": {"GET": _READ},
    f"{SCHEDULES}/{{schedule}}/preview": {"GET": _READ},
    f"{ASSISTANT}/messages": {"POST": _SUBMIT},
    "/api/v1/deliveries": {"GET": _READ},
    INBOX: {"GET": _READ},
    f"{INBOX}/events": {"GET": _READ},
    f"{INBOX}/{{item_id}}": {"GET": _READ, "PATCH": _STEER_ONE, "DELETE": _STEER_ONE},
    f"{PREFIX}recipients/{{recipient}}": {"GET": _READ, "PUT": _STEER_ONE, "PATCH": _STEER_ONE},
    EXECUTIONS: {"GET": _READ},
    f"{EXECUTIONS}/{{task_id}}": {"GET": _READ},
    USED: {"GET": _READ},
    BUDGETS: {"GET": _READ},
    f"{BUDGETS}/{{budget:path}}": {"GET": _READ, "PUT": _STEER_ALL, "DELETE": _STEER_ALL},
    "/api/v1/workers": {"GET": _READ_ALL},
    "/api/v1/workers/{worker_id}/drain": {"POST": _STEER_ALL},
    "/api/v1/dead-letters": {"GET": _READ},
    "/api/v1/dead-letters/replay": {"POST": _STEER},
    "/api/v1/dead-letters/discard": {"POST": _STEER},
    "/api/v1/dead-letters/{task_id}/replay": {"POST": _STEER},
    "/api/v1/events": {"POST": _SUBMIT_ALL},
    "/api/v1/tokens": {"GET": _ADMIN, "POST": _ADMIN},
    "/api/v1/tokens/{token_id}": {"DELETE": _ADMIN},
    "/internal/workers/register": {"POST": _WORKER},
    "/internal/workers/{worker_id}/poll": {"POST": _WORKER},
    "/internal/workers/{worker_id}/result": {"POST": _WORKER},
    "/internal/workers/{worker_id}/heartbeat": {"POST": _WORKER},
    "/internal/workers/{worker_id}/drain": {"POST": _WORKER},
}
"""Path → method → the rule; None is open to everybody. What is `:path` may have slashes in it."""

Methods = Mapping[str, Rule | None]
Check = Callable[[str], Awaitable[Token | None]]

TOKEN: Final = "holdfast.token"  # noqa: S105 - the key in the ASGI scope, no secret
_FIXED: Final = {path: methods for path, methods in TABLE.items() if "{" not in path}
_WITH_PARTS: Final = [
    (re.compile(re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+:path\}", ".+", path))), methods)
    for path, methods in TABLE.items()
    if "{" in path
]


class Access:
    """Middleware: lets a request in, or raises `Refused` with 401, 403, 404 or 405.

    The token it came with is in the ASGI scope under `TOKEN`.
    """

    def __init__(self, app: ASGIApp, check: Check, good: Good, brake: Brake) -> None:
        self._app = app
        self._check = check
        self._revoking = Revoking(good)
        self._brake = brake

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            path = scope["path"]
            if path.startswith(ALIAS) and not path.startswith(PREFIX):
                scope = {**scope, "path": PREFIX + path.removeprefix(ALIAS)}
            await self._admit(scope)
            if TOKEN in scope:
                await self._revoking.run(scope[TOKEN].id, self._app, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Request) -> None:
        methods, method = methods_of(scope["path"]), scope["method"]
        if methods is not None and None in methods.values():
            _refuse_method(methods, method)
            return
        try:
            token = await self._identify(scope)
        except Refused:
            self._brake.failed((scope.get("client") or ("",))[0])
            raise
        if methods is None:
            raise Refused(404, "not_found", f"there is nothing at {scope['path']!r}")
        _refuse_method(methods, method)
        rule = methods[method]
        assert rule is not None
        refuse_token(token, rule)
        scope[TOKEN] = token

    async def _identify(self, scope: Request) -> Token:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            raise _unknown("missing_token", "send a token: `Authorization: Bearer hf_…`", "Bearer")
        kind, _, text = given[0].decode("latin-1").partition(" ")
        token = None
        if len(given) == 1 and kind.lower() == "bearer" and text.isascii():
            token = await self._check(text.strip())
        if token is None:
            raise _unknown(
                "invalid_token",
                "the Authorization header has no token that holds: it is malformed, unknown, "
                "expired or revoked. Expected `Authorization: Bearer hf_…`",
                'Bearer error="invalid_token"',
            )
        return token


def methods_of(path: str) -> Methods | None:
    """What may be done at a path, if it is in the table."""
    methods = _FIXED.get(path)
    if methods is not None:
        return methods
    return next((known for shape, known in _WITH_PARTS if shape.fullmatch(path)), None)


def _refuse_method(methods: Methods, method: str) -> None:
    if method not in methods:
        allowed = ", ".join(sorted(methods))
        raise Refused(
            405,
            "method_not_allowed",
            f"{method} is not allowed here; {allowed} is",
            headers={"Allow": allowed},
        )


def refuse_token(token: Token, rule: Rule) -> None:
    """`Refused` unless the rule lets this token in."""
    refuse_scope(token, *rule.scopes)
    if rule.bound is WhenBound.REFUSED and token.bounds.is_narrow:
        raise Refused(
            403,
            "bound_token",
            "this is about all that is in the store, and this token is bound to a part of it",
        )


def refuse_scope(token: Token, *scopes: Scope, field: str | None = None) -> None:
    """`Refused` unless the token has one of these scopes; `field` is what takes it, if not all."""
    if not token.may(*scopes):
        words = " or ".join(scopes)
        raise Refused(
            403,
            "insufficient_scope",
            f"{field or 'this'} takes a token with the scope {words}; this one has "
            f"{', '.join(sorted(token.scopes)) or 'none'}",
            field=field,
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scopes[0]}"'},
        )


def _unknown(code: str, detail: str, challenge: str) -> Refused:
    return Refused(401, code, detail, headers={"WWW-Authenticate": challenge})
