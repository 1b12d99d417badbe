"""Tokens: made, listed and revoked by those who may do everything."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.store_answers import TOKEN, NewTokenAnswer, TokenList
from holdfast.core.token import Scope
from holdfast.errors import InvalidOption
from holdfast.server.answers import answer, nothing
from holdfast.server.bodies import read_json
from holdfast.server.callbacks.signing import own_secret
from holdfast.server.documented import TOKEN_ID, documented
from holdfast.server.models.tasks import NoQuery
from holdfast.server.models.tokens import NewToken
from holdfast.server.problems import Refused
from holdfast.server.service import service_of, token_of
from holdfast.server.shape import Shape

router = APIRouter(tags=["tokens"])

NEW = Shape(NewToken, nullable=True)
PLAIN = Shape(NoQuery)
TOKENS = "/api/v1/tokens"


@router.get(TOKENS, **documented("List tokens", answers=TokenList, query=PLAIN))
async def list_tokens(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    client = await service_of(request).verbs()
    return answer({"tokens": [TOKEN.write(each) for each in await client.tokens.list()]})


@router.post(
    TOKENS,
    **documented(
        "Make a token",
        says="The answer has its text, and nothing else ever will. `owner`, `queues`, "
        "`task_types`, `max_priority` and `rate` bind it; of these, a token with the scope `admin` "
        "can only have a rate, one with the scope `worker` only queues, a priority and a rate.",
        answers=NewTokenAnswer,
        status=201,
        takes=NEW,
        refuses=(409,),
        example={"name": "ci", "scopes": ["submit", "read"], "expires_in_seconds": 7776000},
    ),
)
async def create_token(request: Request) -> Response:
    wanted = NEW.read(await read_json(request))
    client = await service_of(request).verbs()
    try:
        made, text = await client.tokens.create(
            wanted["name"],
            frozenset(Scope(scope) for scope in wanted["scopes"]),
            wanted.get("expires_in_seconds"),
            created_by=token_of(request).id,
            owner=wanted.get("owner"),
            queues=wanted.get("queues"),
            names=wanted.get("task_types"),
            max_priority=wanted.get("max_priority"),
            rate=wanted.get("rate"),
        )
    except InvalidOption as error:
        # Each word is well formed, only together they make no sense.
        raise Refused(409, "conflicting_options", str(error), field=error.option) from None
    own = own_secret(client.settings, made.id)
    return answer(TOKEN.write(made, token=text, callback_secret=own), 201)


@router.delete(
    f"{TOKENS}/{{token_id}}",
    **documented(
        "Revoke a token for ever",
        answers=None,
        status=204,
        query=PLAIN,
        refuses=(404,),
        paths=TOKEN_ID,
    ),
)
async def revoke_token(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    token_id: str = request.path_params["token_id"]
    client = await service_of(request).verbs()
    if not await client.tokens.revoke(token_id):
        raise Refused(404, "token_not_found", "no token with this id holds")
    return nothing()
