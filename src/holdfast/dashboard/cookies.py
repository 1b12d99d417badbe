"""The two cookies: the secret of the session, and a message for the page that comes next.

Both are for the server alone (HttpOnly), are sent by our own pages alone (SameSite=Strict), and for
paths of the dashboard alone. The message is signed by the session, so nobody else can put words
into a page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from holdfast.dashboard.sessions import LIFETIME, Session

SESSION: Final = "holdfast_session"
FLASH: Final = "holdfast_flash"
FLASH_SECONDS: Final = 60
LONGEST_FLASH: Final = 2000


class Flash(NamedTuple):
    """What came of an action; `is_bad` if nothing did."""

    says: str
    is_bad: bool = False


def secret_of(request: Request) -> str | None:
    """The secret that a browser sent."""
    return request.cookies.get(_name(SESSION, request)) or None


def give_session(response: Response, request: Request, secret: str) -> None:
    _set(response, request, SESSION, secret, int(LIFETIME.total_seconds()))


def take_session(response: Response, request: Request) -> None:
    _set(response, request, SESSION, "", 0)


def give_flash(response: Response, request: Request, session: Session, flash: Flash) -> None:
    text = json.dumps([flash.says[:LONGEST_FLASH], flash.is_bad])
    value = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    _set(response, request, FLASH, f"{value}.{_signature(session, value)}", FLASH_SECONDS)


def flash_of(request: Request, session: Session) -> Flash | None:
    """The message that waits for this session."""
    value, _, signature = request.cookies.get(_name(FLASH, request), "").partition(".")
    if not value or not hmac.compare_digest(
        signature.encode(), _signature(session, value).encode()
    ):
        return None
    try:
        return Flash(*json.loads(base64.urlsafe_b64decode(value + "==")))
    except (ValueError, TypeError, binascii.Error):
        return None


def take_flash(response: Response, request: Request) -> None:
    """It was shown."""
    if _name(FLASH, request) in request.cookies:
        _set(response, request, FLASH, "", 0)


def _set(response: Response, request: Request, name: str, value: str, seconds: int) -> None:
    response.set_cookie(
        _name(name, request),
        value,
        max_age=seconds,
        path=request.scope.get("root_path", "") or "/",
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )


def is_https(request: Request) -> bool:
    """Whether the browser speaks TLS: to us, or to a proxy before us. It says so itself when it
    posts, and a proxy may; both can only make the cookie safer.
    """
    said = request.headers.get("origin", ""), request.headers.get("x-forwarded-proto", "")
    return (
        request.url.scheme == "https"
        or said[0].startswith("https://")
        or said[1].startswith("https")
    )


def _name(name: str, request: Request) -> str:
    """Cookies know no ports, and two servers may well run on one machine."""
    _, _, port = request.headers.get("host", "").rpartition(":")
    return f"{name}_{port}" if port.isascii() and port.isdigit() else name


def _signature(session: Session, value: str) -> str:
    return hmac.new(session.csrf.encode(), value.encode(), hashlib.sha256).hexdigest()
