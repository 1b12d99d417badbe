"""`holdfast token …`: who may use the server, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import words
from holdfast.cli.command import CommandFailed, Session, with_client, with_making_client
from holdfast.cli.screen import Answer, Screen
from holdfast.core.task import Json
from holdfast.server.callbacks.signing import own_secret

if TYPE_CHECKING:
    from holdfast.core.token import Bounds, Token

app = typer.Typer(help="Make, list and revoke the server's tokens.", no_args_is_help=True)


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
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DURATION", help="Good for so long, such as 90d."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", "-n", metavar="TEXT", help="Whose it is, to know it by.")
    ] = "",
    owner: Annotated[
        str | None,
        typer.Option("--owner", metavar="TEXT", help="Tasks of this owner only, in everything."),
    ] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", metavar="NAME", help="These queues only; repeatable."),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="NAME", help="Tasks of these names only; repeatable."),
    ] = None,
    max_priority: Annotated[
        str | None,
        typer.Option("--max-priority", metavar="PRIORITY", help="Submit nothing more urgent."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="N/TIME", help="So many requests, such as 100/1m."),
    ] = None,
) -> Answer:
    """Make a token and show it, once.

    Only its hash is kept: whoever loses the text needs another token.
    """
    token, text = await session.client.tokens.create(
        name,
        scopes,
        expires,
        created_by="cli",
        owner=owner,
        queues=queues or None,
        names=names or None,
        max_priority=max_priority,
        rate=rate,
    )

    own = {"token": text, "callback_secret": own_secret(session.client.settings, token.id)}
    return Answer(token_answer(token) | own, lambda screen: screen.line(text))


@app.command("callback-secret")
@with_client
async def callback_secret(
    session: Session,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, or its text.")],
) -> Answer:
    """Show what callbacks of a token's tasks are signed with, for whoever receives them."""
    secret = own_secret(session.client.settings, _read_id(token_id))
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
        {"tokens": [token_answer(token) for token in found]},
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


def token_answer(token: Token) -> Json:
    """A token for machines, without its digest."""
    from holdfast.core.store_answers import TOKEN  # noqa: PLC0415

    return TOKEN.write(token)


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
