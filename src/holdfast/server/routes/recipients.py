"""Recipients, and the links by which they unsubscribe."""

from __future__ import annotations

import html
from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.core.delivery_answers import RecipientAnswer
from holdfast.core.recipient import Recipient
from holdfast.delivery.channels.web_push import WebPushChannel
from holdfast.delivery.recipients import Recipients, shown_recipient
from holdfast.delivery.unsubscribing import PATH, Unsubscription, read_token
from holdfast.server.access import PREFIX
from holdfast.server.answers import answer
from holdfast.server.documented import problem
from holdfast.server.models.delivery import RecipientWords
from holdfast.server.models.tasks import NoQuery
from holdfast.server.owned import may_redirect, owner_for
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.service import Service
from holdfast.server.shape import Shape
from holdfast.webhooks.signing import secret_of_owner

routes = Routes("recipients")
router = APIRouter(tags=["recipients"])

ONE: Final = f"{PREFIX}recipients/{{recipient}}"
WORDS: Final = Shape(RecipientWords)
GUARDED: Final = ("email", "webhook_url")
SAYS: Final = (
    "A token that is bound to an owner reaches its own recipient only, and may set `email` and "
    "`webhook_url` only with the scope `operate`. Nothing is stored if anything is wrong."
)
EXAMPLE: Final = {
    "email": "ann@example.com",
    "timezone": "Europe/Berlin",
    "quiet_hours": {"from": "22:00", "to": "07:00"},
}
_PAGE: Final = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Unsubscribe</title>'
    '<meta name="viewport" content="width=device-width"></head><body><p>{said}</p>{form}'
    "</body></html>"
)
_FORM: Final = '<form method="post"><button type="submit">Unsubscribe</button></form>'
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'"
}

_DESCRIBED: Final[dict[str, Any]] = {
    "response_model": None,
    "responses": {
        200: {"description": "A page", "content": {"text/html": {"schema": {"type": "string"}}}},
        **{code: problem(code) for code in (404, 503)},
    },
    "openapi_extra": {
        "parameters": [
            {"name": "token", "in": "query", "required": False, "schema": {"type": "string"}}
        ]
    },
}


@routes("GET", ONE, "Where an owner's deliveries go", answers=RecipientAnswer)
async def get_recipient(request: ApiRequest[NoQuery]) -> Response:
    owner = owner_for(request.token, request.named)
    found = await (await _recipients(request.service)).get(owner or "")
    if found is None:
        raise Refused(404, "recipient_not_found", f"nothing was said of {owner!r} yet")
    return answer(_shown(request, found))


@routes(
    "PUT",
    ONE,
    "Say where an owner's deliveries go",
    says=f"What is left out is gone, but for what the owner has unsubscribed from. {SAYS}",
    answers=RecipientAnswer,
    takes=WORDS,
    example=EXAMPLE,
)
async def put_recipient(request: ApiRequest[RecipientWords]) -> Response:
    recipients, owner, words = await _checked(request)
    if not may_redirect(request.token):
        # It may not set these, so it does not unset them either.
        old = await recipients.get(owner) or Recipient(owner=owner)
        words = {**{name: getattr(old, name) for name in GUARDED}, **words}
    return answer(_shown(request, await recipients.put(owner, **words)))


@routes(
    "PATCH",
    ONE,
    "Change where an owner's deliveries go",
    says=f"What is left out stays; null takes away. {SAYS}",
    answers=RecipientAnswer,
    takes=WORDS,
    example={"quiet_hours": None},
)
async def patch_recipient(request: ApiRequest[RecipientWords]) -> Response:
    recipients, owner, words = await _checked(request)
    return answer(_shown(request, await recipients.patch(owner, **words)))


async def _checked(request: ApiRequest[RecipientWords]) -> tuple[Recipients, str, Any]:
    owner = owner_for(request.token, request.named) or ""
    given = [name for name in GUARDED if name in request.words]
    if given and not may_redirect(request.token):
        raise Refused(
            403,
            "out_of_bounds",
            "this token is bound to an owner: where mail and webhooks go is said with the scope "
            "operate, or by a token that is not bound",
            field=given[0],
        )
    return await _recipients(request.service), owner, request.words


async def _recipients(service: Service) -> Recipients:
    client = await service.verbs()
    channels = tuple(service.holdfast.delivery.channels)
    return Recipients(client.store, channels, service.settings.callback_hosts)


def _shown(request: ApiRequest[Any], recipient: Recipient) -> dict[str, Any]:
    secret = request.service.settings.callback_secret
    knows = secret is not None and may_redirect(request.token)
    push = request.service.holdfast.delivery.channels.get("web_push")
    is_ours = isinstance(push, WebPushChannel) and push.missing() is None
    return {
        **shown_recipient(recipient),
        "webhook_secret": secret_of_owner(recipient.owner, secret or "") if knows else None,
        "vapid_public_key": push.public_key
        if is_ours and isinstance(push, WebPushChannel)
        else None,
    }


@router.get(PATH, summary="A page with a button to unsubscribe", **_DESCRIBED)
async def show_unsubscribe(request: Request) -> Response:
    """What a reader sees who follows the link: looking at it changes nothing."""
    wanted = _wanted(request)
    said = f"Unsubscribe {html.escape(wanted.owner)} from {html.escape(wanted.channel)}?"
    return HTMLResponse(_PAGE.format(said=said, form=_FORM), headers=_HEADERS)


@router.post(PATH, summary="Unsubscribe by one click", **_DESCRIBED)
async def unsubscribe(request: Request) -> Response:
    """What the button does, and a mail program by `List-Unsubscribe-Post`. Idempotent."""
    wanted = _wanted(request)
    await (await _recipients(request.app.state.service)).unsubscribe(*wanted)
    said = f"{html.escape(wanted.owner)} is unsubscribed from {html.escape(wanted.channel)}."
    return HTMLResponse(_PAGE.format(said=said, form=""), headers=_HEADERS)


def _wanted(request: Request) -> Unsubscription:
    service: Service = request.app.state.service
    wanted = read_token(service.settings.delivery_secret, request.query_params.get("token", ""))
    if wanted is None:
        raise Refused(404, "not_found", "this link is not one of ours, or not whole")
    return wanted
