"""Everything that can go wrong, as `application/problem+json` (RFC 9457).

    {"type": "urn:holdfast:problem:task_not_found", "title": "Not Found", "status": 404,
     "detail": "no task '…' in this store. …", "code": "task_not_found", "id": "5f0c…"}

`code` is stable and made for programs, `detail` is a sentence for people, `field` names the part of
the request that is to blame. `id` is in the log beside whatever else is known; a trace never leaves
the server.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import errors
from holdfast.core.task import Json
from holdfast.errors import HoldfastError
from holdfast.filters import JSON_WORDS
from holdfast.logs import EventLog, trace_of

log = EventLog("holdfast.server")

MEDIA_TYPE: Final = "application/problem+json"
LONGEST_DETAIL: Final = 4000
LONGEST_FIELD: Final = 500
TITLES: Final[Mapping[int, str]] = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}
"""What Python 3.13 calls by another name than those before it."""


class Refused(Exception):
    """A request that is answered with a problem. `extra` members stand beside the usual ones."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        **extra: Json,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.headers = dict(headers or {})
        self.extra = extra


class Gone(Exception):
    """The client left before it had sent its request: nobody is there to be answered."""


class Ended(Refused):
    """The token that the request came with has been revoked, or has expired, since."""

    def __init__(self) -> None:
        super().__init__(
            401,
            "invalid_token",
            "the token has been revoked, or has expired, since the request began",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"', "Connection": "close"},
        )


class ProblemKind(NamedTuple):
    """How an error shows over HTTP."""

    status: int
    code: str


KINDS: Final[Mapping[type[HoldfastError], ProblemKind]] = {
    errors.InvalidArguments: ProblemKind(422, "invalid_arguments"),
    errors.PayloadRefused: ProblemKind(422, "payload_refused"),
    errors.InvalidOption: ProblemKind(422, "invalid_option"),
    errors.IdempotencyConflict: ProblemKind(409, "idempotency_conflict"),
    errors.BudgetExceeded: ProblemKind(409, "budget_exceeded"),
    errors.RecordConflict: ProblemKind(409, "record_conflict"),
    errors.TaskNotFound: ProblemKind(404, "task_not_found"),
    errors.ScheduleNotFound: ProblemKind(404, "schedule_not_found"),
    errors.UnknownTask: ProblemKind(422, "unknown_task_type"),
    errors.InvalidTransition: ProblemKind(409, "invalid_transition"),
    errors.LeaseLost: ProblemKind(409, "lease_lost"),
    errors.WorkerGone: ProblemKind(409, "worker_gone"),
    errors.WorkerNotFound: ProblemKind(404, "worker_not_found"),
    errors.StoreUnavailable: ProblemKind(503, "store_unavailable"),
    errors.SchemaMismatch: ProblemKind(503, "schema_mismatch"),
    errors.TimerUnavailable: ProblemKind(503, "timer_unavailable"),
    errors.Unsupported: ProblemKind(409, "unsupported"),
    errors.ResultTimeout: ProblemKind(409, "result_timeout"),
    errors.TaskUnsuccessful: ProblemKind(409, "task_unsuccessful"),
    errors.StoreError: ProblemKind(500, "internal_error"),
    errors.HoldfastError: ProblemKind(500, "internal_error"),
}
"""The one table. An error is shown as the nearest of its bases that stands here."""


def refusal_of(error: HoldfastError) -> Refused:
    """How an error of ours is told to a client."""
    kind = next(KINDS[base] for base in type(error).__mro__ if base in KINDS)
    if kind.status >= 500 and kind.code == "internal_error":
        return _internal()
    headers = {"Retry-After": "1"} if kind.status == 503 else {}
    field, extra = _subject(error)
    if field == "callback_url":
        # Its form is right; that this server may not call it is the server's affair.
        kind = ProblemKind(409, "callback_refused")
    return Refused(kind.status, kind.code, str(error), field=field, headers=headers, **extra)


def located(error: HoldfastError | Refused, at: str, **extra: Json) -> Refused:
    """The refusal of a part of a larger request: `at` is where it stands."""
    refused = error if isinstance(error, Refused) else refusal_of(error)
    if refused.status < 500:
        refused.field = at if refused.field is None else f"{at}.{refused.field}"
        for problem in refused.extra.get("errors", ()):
            problem["field"] = f"{at}.{problem['field']}" if problem["field"] else at
        refused.extra |= extra
    return refused


def _subject(error: HoldfastError) -> tuple[str | None, dict[str, Json]]:
    """The field to blame, and what else a program may want to know."""
    match error:
        case errors.InvalidArguments(problems=problems):
            listed = [{"field": f"parameters.{at}", "message": text} for at, text in problems]
            return (listed[0]["field"] if listed else "parameters"), {"errors": listed}
        case errors.IdempotencyConflict(task_id=task_id):
            return "idempotency_key", {"task_id": task_id}
        case errors.BudgetExceeded(budget=budget):
            return None, {"budget": budget}
        case errors.InvalidOption(option=option):
            return field_of(option), {}
        case errors.UnknownTask(name=name, suggestion=suggestion):
            hint = {"suggestion": suggestion} if suggestion else {}
            return "task_type", {"task_type": name} | hint
        case errors.ScheduleNotFound(name=name):
            return None, {"schedule": name}
        case errors.TaskNotFound(task_id=task_id):
            return None, {"task_id": task_id}
        case errors.WorkerGone(worker_id=worker_id) | errors.WorkerNotFound(worker_id=worker_id):
            return None, {"worker_id": worker_id}
        case errors.InvalidTransition(task_id=task_id, action=action, state=state):
            return None, {"task_id": task_id, "action": action, "task_status": str(state)}
        case _:
            return None, {}


def field_of(option: str) -> str:
    """An option, or a place in one (`requires[0]`), as it is called in JSON."""
    name, bracket, place = option.partition("[")
    return JSON_WORDS.get(name, name) + bracket + place


def _internal() -> Refused:
    return Refused(
        500,
        "internal_error",
        "something went wrong in the server; the log has it under this id. It may help to try "
        "again.",
    )


def body_of(refused: Refused, problem_id: str) -> dict[str, Json]:
    """The JSON of a problem."""
    problem = {
        "type": f"urn:holdfast:problem:{refused.code}",
        "title": TITLES.get(refused.status) or HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "detail": _short(refused.detail, LONGEST_DETAIL),
        "code": refused.code,
        "id": problem_id,
    }
    if refused.field is not None:
        problem["field"] = _short(refused.field, LONGEST_FIELD)
    extra = dict(refused.extra)
    if "errors" in extra:
        extra["errors"] = [
            {
                "field": _short(each["field"], LONGEST_FIELD),
                "message": _short(each["message"], LONGEST_FIELD),
            }
            for each in extra["errors"]
        ]
    return problem | extra


def _short(text: str, longest: int) -> str:
    """What a client sent may stand in here: an answer must not grow with it."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def response_of(refused: Refused, problem_id: str) -> tuple[Message, Message]:
    """The two messages that tell a client."""
    body = orjson.dumps(body_of(refused, problem_id))
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        *((name.lower().encode(), text.encode()) for name, text in refused.headers.items()),
    ]
    return (
        {"type": "http.response.start", "status": refused.status, "headers": headers},
        {"type": "http.response.body", "body": body},
    )


class Problems:
    """Middleware: whatever is raised further in becomes a problem, and is logged with its id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Gone:
            return
        except Exception as error:
            refused = response_of(*told(error, scope))
            if started and isinstance(error, Ended):
                await send({"type": "http.response.body", "body": b""})
                return
            if started:
                raise  # half an answer is out: the connection must break, or it looks whole
            for message in refused:
                await send(message)


def told(error: Exception, scope: Scope) -> tuple[Refused, str]:
    """What the client is told of an error, and the id under which the log has it from now on."""
    refused = _refusal(error)
    problem_id = secrets.token_hex(8)
    said = {
        "id": problem_id,
        "code": refused.code,
        "method": scope["method"],
        "path": scope["path"],
    }
    if refused.status >= 500:
        if refused.code == "internal_error":
            said["exception"] = trace_of(error)
        log.error("request.failed", status=refused.status, error=repr(error), **said)
    else:
        log.debug("request.refused", status=refused.status, detail=refused.detail, **said)
    return refused, problem_id


def _refusal(error: Exception) -> Refused:
    match error:
        case Refused():
            return error
        case HoldfastError():
            return refusal_of(error)
        case _:
            return _internal()
