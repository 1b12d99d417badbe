"""Whose recipient, inbox and deliveries a token may ask for: its owner's, if it is bound to one."""

from __future__ import annotations

from holdfast.core.token import Scope, Token
from holdfast.server.problems import Refused


def owner_for(token: Token, asked: str | None) -> str | None:
    """The owner that is meant; `Refused` if that is somebody else's affair."""
    mine = token.bounds.owner
    if mine is None:
        if token.bounds.is_narrow:
            raise Refused(
                403, "bound_token", "this takes a token that is bound to an owner, or to nothing"
            )
        return asked
    if asked not in (None, mine):
        raise Refused(404, "not_found", f"there is nothing of {asked!r}")
    return mine


def may_redirect(token: Token) -> bool:
    """Whether it may say where mail and webhooks go. Not a token for an owner's own browser: text
    that gets hold of it must not lead results elsewhere.
    """
    return token.bounds.owner is None or token.may(Scope.OPERATE)
