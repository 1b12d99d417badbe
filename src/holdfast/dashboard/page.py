"""What a page is: who may see it, how it reads what it shows, and what its forms do.

    page = Page("/queues", "queues.html", "Queues", rule=READ_ALL)

    @page.read
    async def read(view: View) -> Shown: ...

    @page.action("/queues/{queue}/pause", rule=STEER_ALL)
    async def pause(form: Form) -> Done: ...

The template extends `layout.html`; each of its blocks whose name begins with `live_`, inside a
`<section data-live="…">` of the same name, is kept up to date while somebody looks. What stands in
such a block must depend on nothing but the view: it is made once for all who may see the same. So
a button there belongs to the form `steer` of the layout, which has the session's secret.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import QueryParams

from holdfast.client import Client
from holdfast.core.token import Scope, Token
from holdfast.dashboard.overview import Trends
from holdfast.server.access import Rule, WhenBound
from holdfast.server.agent_reach import AgentReach
from holdfast.server.reach import Reach
from holdfast.server.schedule_reach import ScheduleReach
from holdfast.server.service import Service

READ: Final = Rule((Scope.READ,), WhenBound.OWN)
READ_ALL: Final = Rule((Scope.READ,), WhenBound.REFUSED)
SUBMIT: Final = Rule((Scope.SUBMIT,), WhenBound.OWN)
STEER_ONE: Final = Rule((Scope.SUBMIT, Scope.OPERATE), WhenBound.OWN)
STEER: Final = Rule((Scope.OPERATE,), WhenBound.OWN)
STEER_ALL: Final = Rule((Scope.OPERATE,), WhenBound.REFUSED)
ADMIN: Final = Rule((Scope.ADMIN,), WhenBound.REFUSED)
"""Rules as `server.access` has them: a page is for those who may ask the API for the same."""

_DOTS: Final = re.compile(r"/(?=\.\.?(?:/|$))").sub
"""Browsers take `/../` for a way up, and a name may hold it."""


class AnyText(Convertor[str]):
    """A part of a path that is a name of somebody's choice, with slashes and line ends in it."""

    regex = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", AnyText())

Shown = dict[str, Any]
"""What a template is given. `status` is the page's own, if it is not 200."""


@dataclass(frozen=True, kw_only=True)
class View:
    """What somebody looks at: a page's address, and the token they look with."""

    service: Service
    token: Token
    trends: Trends
    root: str = ""
    host: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    query: QueryParams = field(default_factory=QueryParams)

    async def verbs(self) -> Client:
        """The client, for what is about no task. Tasks, schedules and agents go by reaches."""
        return await self.service.verbs()

    async def reach(self) -> Reach:
        return Reach(await self.verbs(), self.token, self.service.windows)

    async def schedules(self) -> ScheduleReach:
        return ScheduleReach(await self.verbs(), self.token, await self.reach())

    async def agents(self) -> AgentReach:
        return AgentReach(await self.verbs(), self.token, await self.reach())

    def may(self, rule: Rule) -> bool:
        """Whether the token may do what has this rule."""
        is_refused = rule.bound is WhenBound.REFUSED and self.token.bounds.is_narrow
        return self.token.may(*rule.scopes) and not is_refused

    def url(self, path: str, **query: object) -> str:
        return url(self.root, path, **query)


def url(root: str, path: str, **query: object) -> str:
    """The address of one of our paths, wherever the dashboard is mounted."""
    words = urlencode({name: each for name, each in query.items() if each is not None}, doseq=True)
    quoted = _DOTS("%2F", quote(f"{root}{path}", safe="/:@!$&'()*+,;=~-._"))
    return quoted + (f"?{words}" if words else "")


@dataclass(frozen=True, kw_only=True)
class Form(View):
    """A form that was sent: by one of our own pages, with this session's secret."""

    words: QueryParams = field(default_factory=QueryParams)


@dataclass(frozen=True, kw_only=True)
class Done:
    """An action is over: what is said of it on the page that comes next."""

    to: str
    says: str = ""
    is_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class Again:
    """The form is shown once more, with what is wrong with it."""

    shown: Shown


Read = Callable[[View], Awaitable["Shown | Done"]]
Act = Callable[[Form], Awaitable[Done | Again]]


@dataclass(frozen=True)
class Action:
    """What a form of a page does. If it cannot, that is said on the page at `back`."""

    path: str
    rule: Rule
    act: Act
    back: str


class Page:
    """One kind of page."""

    def __init__(
        self, path: str, template: str, title: str, *, rule: Rule, is_live: bool = True
    ) -> None:
        self.path = path
        self.template = template
        self.title = title
        self.rule = rule
        self.is_live = is_live
        self.actions: list[Action] = []
        self.reader: Read = _nothing

    def read(self, reader: Read) -> Read:
        self.reader = reader
        return reader

    def action(self, path: str, *, rule: Rule, back: str | None = None) -> Callable[[Act], Act]:
        def declare(act: Act) -> Act:
            self.actions.append(Action(path, rule, act, back or self.path))
            return act

        return declare


async def _nothing(view: View) -> Shown:
    return {}
