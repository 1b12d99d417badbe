"""A real SMTP server on a free port, which can be told to refuse, to be slow and to hang up."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "mailer", "pass word/with:signs"


class MailServer:
    """What it got, and how it behaves: `answers` are given to DATA first, `to_recipients` to RCPT,
    250 after that. An answer `"hang up"` cuts the line instead.
    """

    def __init__(self) -> None:
        self.got: list[EmailMessage] = []
        self.envelopes: list[Envelope] = []
        self.sessions: list[Session] = []
        self.answers: list[str] = []
        self.to_recipients: list[str] = []
        self.delay = 0.0
        self.port = 0

    async def handle_RCPT(  # noqa: N802 - as aiosmtpd calls it
        self, server: Any, session: Session, envelope: Envelope, address: str, options: Any
    ) -> str:
        if self.to_recipients:
            return self.to_recipients.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - likewise
        self, server: Any, session: Session, envelope: Envelope
    ) -> str:
        await asyncio.sleep(self.delay)
        answer = self.answers.pop(0) if self.answers else "250 taken"
        if answer == "hang up":
            server.transport.abort()
            return "451 never seen"
        if answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            mail = message_from_bytes(envelope.content, policy=default)
            assert isinstance(mail, EmailMessage)
            self.got.append(mail)
            self.envelopes.append(envelope)
            self.sessions.append(session)
        return answer

    def url(self, scheme: str = "smtp", query: str = "?starttls=no", login: str = "") -> str:
        return f"{scheme}://{login}localhost:{self.port}{query}"


def _login(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (
        USER.encode(),
        PASSWORD.encode(),
    )
    return AuthResult(success=is_right, handled=False)


@contextmanager
def mail_server(
    *,
    starttls: ssl.SSLContext | None = None,
    implicit: ssl.SSLContext | None = None,
    with_login: bool = False,
) -> Iterator[MailServer]:
    """A server, as long as one is inside."""
    server = MailServer()
    with socket.create_server(("127.0.0.1", 0)) as free:
        server.port = free.getsockname()[1]
    controller = Controller(
        server,
        hostname="localhost",
        port=server.port,
        ssl_context=implicit,
        tls_context=starttls,
        require_starttls=starttls is not None,
        authenticator=_login if with_login else None,
        auth_required=with_login,
        auth_require_tls=starttls is not None,
        server_hostname="mail.test",
    )
    controller.start()
    try:
        yield server
    finally:
        controller.stop()
