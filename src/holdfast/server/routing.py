"""Routes, each declared once: what it takes and answers is said on the OpenAPI page, and read and
checked by the same declaration.

    routes = Routes("tokens")

    @routes("POST", TOKENS, "Make a token", takes=NEW, answers=NewTokenAnswer, status=201)
    async def create_token(request: ApiRequest[NewToken]) -> Response: ...
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.client import Client
from holdfast.core.task import Json
from holdfast.core.token import Token
from holdfast.server.access import TOKEN
from holdfast.server.bodies import SMALL, read_json
from holdfast.server.documented import (
    ALWAYS,
    WITH_BODY,
    Kinds,
    body_of,
    parameters_of,
    responses_of,
)
from holdfast.server.models.tasks import NoQuery
from holdfast.server.reach import Reach
from holdfast.server.service import Service
from holdfast.server.shape import Shape

PLAIN: Final = Shape(NoQuery)

T = TypeVar("T")


class ApiRequest(Request, Generic[T]):
    """A request to one of our routes. `words` is its body where it takes one, else its query."""

    words: T

    @property
    def service(self) -> Service:
        service: Service = self.app.state.service
        return service

    @property
    def token(self) -> Token:
        """The token that the request came with."""
        token: Token = self.scope[TOKEN]
        return token

    @property
    def named(self) -> str:
        """What the path names: a task, a queue, a limit, a worker or a token."""
        (name,) = self.path_params.values()
        return str(name)

    async def verbs(self) -> Client:
        return await self.service.verbs()

    async def reach(self) -> Reach:
        """The verbs about tasks, as far as the token reaches."""
        return Reach(await self.verbs(), self.token, self.service.windows)


E = TypeVar("E", bound=Callable[[ApiRequest[Any]], Awaitable[Response]])


class Routes:
    """Some routes of the service."""

    def __init__(self, *tags: str) -> None:
        self.router = APIRouter(tags=list(tags))

    def __call__(
        self,
        method: str,
        path: str,
        summary: str,
        *,
        answers: Kinds | Mapping[int, Kinds] | None,
        status: int = 200,
        takes: Shape[Any] | None = None,
        query: Shape[Any] | None = PLAIN,
        body: Shape[Any] | None = None,
        is_optional: bool = False,
        largest: int | None = SMALL,
        refuses: tuple[int, ...] = (),
        example: Json = None,
        says: str | None = None,
        amend: Callable[[dict[str, Any]], None] | None = None,
    ) -> Callable[[E], E]:
        """Declare a route.

        Args:
            answers: A `TypedDict`, or one for each status.
            takes: What the body is; without one the route takes a `query`.
            body: A body that the route reads by itself.
            is_optional: The body may be missing, and is then an empty object.
            refuses: The statuses of problems beside those that every such route has.
            amend: Changes what the page says.
        """
        query = None if takes is not None else query
        sent, names = takes or body, re.findall(r"{(\w+)(?::path)?}", path)
        problems = {*ALWAYS, *refuses, *(WITH_BODY if sent else ())}
        problems |= {*((422,) if query else ()), *((404,) if names else ())}
        extra: dict[str, Json] = {"parameters": parameters_of(names, query)}
        if sent is not None:
            extra["requestBody"] = body_of(sent, example, is_required=not is_optional)
        described: dict[str, Any] = {
            "summary": summary,
            "description": says,
            "status_code": status,
            "responses": responses_of(answers, status, problems),
            "openapi_extra": extra,
        }
        if amend is not None:
            amend(described)

        def declare(endpoint: E) -> E:
            async def asked(request: Request) -> Response:
                ours = ApiRequest[Any](request.scope, request.receive)
                if takes is not None:
                    given = await read_json(request, largest, is_optional=is_optional)
                    ours.words = takes.read(given)
                elif query is not None and request.scope["query_string"]:
                    ours.words = query.read_query(request.query_params)
                else:
                    ours.words = {}  # all words of a query may be left out
                return await endpoint(ours)

            described["operation_id"] = endpoint.__name__
            self.router.add_api_route(
                path, asked, methods=[method], response_model=None, **described
            )
            return endpoint

        return declare
