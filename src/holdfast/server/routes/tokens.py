"""Tokens: made, listed and revoked by those who may do everything."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.store_answers import TOKEN, NewTokenAnswer, TokenList
from holdfast.core.token import Scope
from holdfast.errors import InvalidOption
from holdfast.server.answers import answer, nothing
from holdfast.server.models.tasks import NoQuery
from holdfast.server.models.tokens import NewToken
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape
from holdfast.webhooks.signing import own_secret

routes = Routes("tokens")

NEW = Shape(NewToken, nullable=True)
TOKENS = "/api/v1/tokens"


@routes("GET", TOKENS, "List tokens", answers=TokenList)
async def list_tokens(request: ApiRequest[NoQuery]) -> Response:
    client = await request.verbs()
    return answer({"tokens": [TOKEN.write(each) for each in await client.tokens.list()]})


@routes(
    "POST",
    TOKENS,
    "Make a token",
    says="The answer has its text, and nothing else ever will. `owner`, `queues`, "
    "`task_types`, `max_priority` and `rate` bind it; of these, a token with the scope `admin` "
    "can only have a rate, one with the scope `worker` only queues, a priority and a rate.",
    answers=NewTokenAnswer,
    status=201,
    takes=NEW,
    refuses=(409,),
    example={"name": "ci", "scopes": ["submit", "read"], "expires_in_seconds": 7776000},
)
async def create_token(request: ApiRequest[NewToken]) -> Response:
    wanted = request.words
    client = await request.verbs()
    try:
        made, text = await client.tokens.create(
            wanted["name"],
            frozenset(Scope(scope) for scope in wanted["scopes"]),
            wanted.get("expires_in_seconds"),
            created_by=request.token.id,
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


@routes("DELETE", f"{TOKENS}/{{token_id}}", "Revoke a token for ever", answers=None, status=204)
async def revoke_token(request: ApiRequest[NoQuery]) -> Response:
    client = await request.verbs()
    if not await client.tokens.revoke(request.named):
        raise Refused(404, "token_not_found", "no token with this id holds")
    return nothing()
