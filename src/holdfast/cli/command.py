"""What all commands share: their common options, a client to work with, and how they end.

A command is a function whose first parameter is a `Session`; `with_client` and `with_session` take
that parameter away and put `--url` and `--json` in its place, so no command spells them out.

Exit codes: 0 done; 1 what was asked for failed (not found, refused, something is wrong);
2 wrong usage or configuration.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from holdfast.cli.screen import Answer, show
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.client import Client

P = ParamSpec("P")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The store; else HOLDFAST_URL, pyproject.toml, or sqlite:///holdfast.db.",
        show_default=False,
    ),
]


def _known_level(level: str | None) -> str | None:
    return None if level is None else Settings().override(log_level=level).log_level


LogLevel = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="debug|info|warning|error",
        help="Log from here up; else HOLDFAST_LOG_LEVEL, or info.",
        show_default=False,
        callback=_known_level,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def text_option(
    *names: str, says: str, metavar: str = "TEXT", panel: str | None = None, many: bool = False
) -> Any:
    """The type of an option that takes text, or none; with `many`, it may be repeated."""
    option = typer.Option(*names, help=says, metavar=metavar, rich_help_panel=panel)
    return Annotated[list[str] | None, option] if many else Annotated[str | None, option]


@dataclass(frozen=True)
class OptionGroup:
    """Several options that a command takes as one value: `where: Annotated[…, OptionGroup(…)]`.
    `options` are the types of each, by name; `read` makes the value of what was given.
    """

    options: Mapping[str, Any]
    read: Callable[[dict[str, Any]], Any]

    def collect(self, given: dict[str, Any]) -> Any:
        """Take these options out of `given` and read them."""
        return self.read({name: given.pop(name) for name in self.options})


class CommandFailed(Exception):
    """An expected end of a command: a stable `code`, one clear sentence, and the exit code."""

    def __init__(self, code: str, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code


class WrongUsage(CommandFailed):
    """The command was called in a way that cannot mean anything."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, exit_code=2)


@dataclass(slots=True)
class Session:
    """What a command works with. Commands made by `with_client` have an open `client`."""

    url: str | None
    as_json: bool
    opened: Client | None = None

    @property
    def client(self) -> Client:
        assert self.opened is not None, "only commands made by `with_client` have a client"
        return self.opened


def with_session(body: Callable[Concatenate[Session, P], Answer | None]) -> Callable[..., None]:
    """Make a command of a function that needs no store, or opens its own."""
    return _command(body, body)


def with_app(body: Callable[Concatenate[Session, P], Answer | None]) -> Callable[..., None]:
    """Make a command of a function whose store is that of the user's app: without `--url`."""
    return _command(body, body, asks_url=False)


def with_client(
    body: Callable[Concatenate[Session, P], Awaitable[Answer | None]],
) -> Callable[..., None]:
    """Make a command of a coroutine that works on the chosen store."""
    return _on_a_store(body, makes_it=False)


def with_making_client(
    body: Callable[Concatenate[Session, P], Awaitable[Answer | None]],
) -> Callable[..., None]:
    """The same for a command that may well be the first to use the store: it is made if need be."""
    return _on_a_store(body, makes_it=True)


def _on_a_store(
    body: Callable[Concatenate[Session, P], Awaitable[Answer | None]], *, makes_it: bool
) -> Callable[..., None]:
    def call(session: Session, *args: Any, **kwargs: Any) -> Answer | None:
        work = functools.partial(body, session, *args, **kwargs)
        return asyncio.run(on_store(session, work, makes_it=makes_it))

    return _command(body, call)


async def on_store(
    session: Session, work: Callable[[], Awaitable[Answer | None]], *, makes_it: bool = False
) -> Answer | None:
    """Do this while the session's client is open."""
    from holdfast.app import Holdfast  # noqa: PLC0415
    from holdfast.cli.places import refuse_missing  # noqa: PLC0415

    app = Holdfast(url=session.url)
    if not makes_it:
        await refuse_missing(app.settings.url)
    async with app:
        session.opened = await app.verbs()
        return await work()


def finish(answer: Answer | None, session: Session) -> None:
    """Print the answer and leave with its exit code."""
    if answer is None:
        return
    show(answer, as_json=session.as_json)
    if not answer.ok:
        raise typer.Exit(1)


def _command(
    body: Callable[..., Any], call: Callable[..., Answer | None], *, asks_url: bool = True
) -> Callable[..., None]:
    """Give `call` the body's options but for the session, and the common ones."""
    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
    groups = {p.name: group for p in own if (group := _group(p)) is not None}

    @functools.wraps(body)
    def command(*, url: str | None = None, as_json: bool = False, **given: Any) -> None:
        read = {name: group.collect(given) for name, group in groups.items()}
        session = Session(url, as_json)
        finish(call(session, **given, **read), session)

    options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if p.name not in groups]
    for group in groups.values():
        options += [_keyword(name, kind, None) for name, kind in group.options.items()]
    if asks_url:
        options.append(_keyword("url", Url, None))
    options.append(_keyword("as_json", AsJson, False))
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # read by Typer
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


def _group(parameter: inspect.Parameter) -> OptionGroup | None:
    said = getattr(parameter.annotation, "__metadata__", ())
    return next((each for each in said if isinstance(each, OptionGroup)), None)


def _keyword(name: str, kind: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def confirm(session: Session, question: str, *, yes: bool) -> None:
    """Ask before something large or final; where nobody can answer, only `--yes` will do."""
    if yes:
        return
    if session.as_json or not sys.stdin.isatty():
        raise WrongUsage("not_confirmed", f"{question} Nothing was done; add --yes to go ahead.")
    if not typer.confirm(question):
        raise CommandFailed("not_confirmed", "nothing was done.")
