"""`holdfast token …`: who may use the server, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from holdfast.cli import words
from holdfast.cli.command import (
    CommandFailed,
    OptionGroup,
    Session,
    text_option,
    with_client,
    with_making_client,
)
from holdfast.cli.screen import Answer, Screen
from holdfast.core.store_answers import TOKEN
from holdfast.core.token import Bounds, Token
from holdfast.webhooks.signing import own_secret

app = typer.Typer(help="Make, list and revoke the server's tokens.", no_args_is_help=True)


BoundTo = Annotated[
    dict[str, Any],
    OptionGroup(
        {
            "owner": text_option("--owner", says="Tasks of this owner only, in everything."),
            "queues": text_option(
                "--queue", "-q", says="These queues only; repeatable.", metavar="NAME", many=True
            ),
            "names": text_option(
                "--task", says="Tasks of these names only; repeatable.", metavar="NAME", many=True
            ),
            "max_priority": text_option(
                "--max-priority", says="Submit nothing more urgent.", metavar="PRIORITY"
            ),
            "rate": text_option(
                "--rate", says="So many requests, such as 100/1m.", metavar="N/TIME"
            ),
        },
        lambda given: {word: None if value == [] else value for word, value in given.items()},
    ),
]


@app.command("create")
@with_making_client
async def create(
    session: Session,
    scopes: Annotated[
        list[str],
        typer.Option(
            "--scope",
            "-s",
            metavar="admin|submit|read|operate|worker",
            help="What it allows; repeat for several.",
        ),
    ],
    bounds: BoundTo,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DURATION", help="Good for so long, such as 90d."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", "-n", metavar="TEXT", help="Whose it is, to know it by.")
    ] = "",
) -> Answer:
    """Make a token and show it, once.

    Only its hash is kept: whoever loses the text needs another token.
    """
    tokens = session.client.tokens
    token, text = await tokens.create(name, scopes, expires, created_by="cli", **bounds)
    own = own_secret(session.client.settings, token.id)
    told = TOKEN.write(token, token=text, callback_secret=own)
    return Answer(told, lambda screen: screen.line(text))


@app.command("callback-secret")
@with_client
async def callback_secret(
    session: Session,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, or its text.")],
) -> Answer:
    """Show what callbacks of a token's tasks are signed with, for whoever receives them."""
    wanted = _read_id(token_id)
    if wanted not in {token.id for token in await session.client.tokens.list()}:
        raise CommandFailed(
            "token_not_found",
            f"there is no token {wanted!r}: `holdfast token list --all` shows all.",
        )
    secret = own_secret(session.client.settings, wanted)
    if secret is None:
        raise CommandFailed("no_callbacks", "there are no callbacks here: set `callback_secret`.")
    return Answer({"callback_secret": secret}, lambda screen: screen.line(secret))


@app.command("list")
@with_client
async def list_tokens(
    session: Session,
    everyone: Annotated[bool, typer.Option("--all", help="Also revoked and expired ones.")] = False,
) -> Answer:
    """List tokens, newest first, never their secrets."""
    now = datetime.now(UTC)
    known = await session.client.tokens.list()
    found = [token for token in known if everyone or token.is_valid(now)]
    return Answer(
        {"tokens": [TOKEN.write(token) for token in found]},
        lambda screen: _show(screen, found, now),
    )


@app.command("revoke")
@with_client
async def revoke(
    session: Session,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, or its text.")],
) -> Answer:
    """End a token for ever. Running servers notice within a second."""
    wanted = _read_id(token_id)
    if not await session.client.tokens.revoke(wanted):
        raise CommandFailed(
            "token_not_found",
            f"there is no token {wanted!r} that could be revoked: it never was, or it was revoked "
            "before. `holdfast token list --all` shows all.",
        )
    return Answer(
        {"token_id": wanted, "revoked": True}, lambda screen: screen.line(f"{wanted} is revoked.")
    )


def _show(screen: Screen, tokens: Sequence[Token], now: datetime) -> None:
    if not tokens:
        screen.line("No token. Make one: holdfast token create --scope submit --expires 90d")
        return
    screen.table(
        ("id", "name", "scopes", "bound to", "created", "by", "last used", "expires", "state"),
        [
            (
                token.id,
                token.name or "-",
                ", ".join(sorted(token.scopes)),
                bound_to(token.bounds) or "-",
                words.ago(token.created_at, now),
                token.created_by or "-",
                "-" if token.last_used_at is None else words.ago(token.last_used_at, now),
                "-" if token.expires_at is None else words.ago(token.expires_at, now),
                _state(token, now),
            )
            for token in tokens
        ],
    )


def bound_to(bounds: Bounds) -> str:
    """A token's bounds in few words."""
    several = (("queue", bounds.queues), ("task", bounds.names))
    single = (("owner", bounds.owner), ("up to", bounds.max_priority), ("rate", bounds.rate))
    said = [f"{word} {', '.join(sorted(names))}" for word, names in several if names]
    return "; ".join([f"{word} {value}" for word, value in single if value] + said)


def _state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "good" if token.is_valid(now) else "expired"


def _read_id(text: str) -> str:
    """The id in what was given: people paste whole tokens, whose secret must not be repeated."""
    parts = text.strip().split("_")
    return parts[1] if len(parts) > 2 and parts[0] == "hf" else text.strip()
