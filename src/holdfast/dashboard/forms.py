"""Forms as browsers send them, and whether they come from our own pages."""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import QueryParams
from starlette.requests import Request

from holdfast.dashboard.sessions import Session
from holdfast.server.bodies import read_body, require
from holdfast.server.problems import Refused

FORM: Final = "application/x-www-form-urlencoded"
CSRF: Final = "csrf"
CSRF_HEADER: Final = "x-csrf-token"
MOST_FIELDS: Final = 2000


async def read_form(request: Request) -> QueryParams:
    """The fields of a form; browsers write line ends as two characters, we as one."""
    require(request, FORM)
    body = await read_body(request)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )
    except ValueError as error:
        raise Refused(400, "invalid_form", f"this is no form: {error}") from None
    return QueryParams([(name, text.replace("\r\n", "\n")) for name, text in pairs])


def refuse_strangers(request: Request) -> None:
    """`Refused` for what another site's page sends. Every browser says whose page a form is on.

    The host decides and not the scheme: a proxy may speak TLS for us.
    """
    origins = request.headers.getlist("origin")
    ours = request.headers.get("host", "")
    if len(origins) != 1 or not ours or urlsplit(origins[0]).netloc != ours:
        raise Refused(
            403,
            "foreign_origin",
            "this did not come from a page of this dashboard. Open it, and try again there; if a "
            "proxy is between, it must pass the Host header on as it came",
        )


def refuse_forged(request: Request, form: QueryParams, session: Session) -> None:
    """`Refused` unless the form was made for this very session."""
    given = request.headers.get(CSRF_HEADER) or form.get(CSRF, "")
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise Refused(
            403, "stale_form", "this form is of an earlier login. Go back, reload, and try again"
        )
