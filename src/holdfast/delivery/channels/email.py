"""E-mail over SMTP: with TLS, in text and HTML, and with a way to unsubscribe by one click.

The Message-ID is made from the delivery, so that a mail which is sent again after an unknown
outcome is the same mail to whoever keeps one of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from functools import cached_property
from typing import TYPE_CHECKING, Final

from holdfast.core.mail_address import MailServer, Tls, parse_smtp_url
from holdfast.core.recipient import Recipient
from holdfast.delivery.channels.drivers import without_driver
from holdfast.delivery.templates import Templates, one_line
from holdfast.errors import Fatal, HoldfastError
from holdfast.ports.channel import Message
from holdfast.settings import Settings

if TYPE_CHECKING:
    import aiosmtplib

TIME_LIMIT: Final = 20.0
"""Seconds for each step of the talk with the mail server."""
PERMANENT: Final = range(500, 600)


class MailNotTaken(HoldfastError):
    """The mail server did not take it this time."""


class EmailChannel:
    """Hands mail to one server."""

    is_loud = True

    def __init__(self, settings: Settings, templates: Templates) -> None:
        self._settings = settings
        self._templates = templates

    def missing(self) -> str | None:
        if self._settings.smtp_url is None:
            return "set `smtp_url`"
        if self._settings.mail_from is None:
            return "set `mail_from`"
        return without_driver("aiosmtplib")

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        return () if recipient.email is None else (recipient.email,)

    def place(self, address: str) -> str:
        return self._server.host

    async def send(self, message: Message, address: str) -> str:
        mail = self.compose(message, address)
        import aiosmtplib  # noqa: PLC0415 - of the extra `delivery`

        client = self._client()
        try:
            async with client:
                if self._server.user is not None:
                    await self._login(client)
                _, answer = await client.send_message(mail)
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = error.recipients[0]
            raise _judged(refused.code, refused.message) from None
        except aiosmtplib.SMTPResponseException as error:
            raise _judged(error.code, error.message) from None
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            raise MailNotTaken(f"{type(error).__name__}: {one_line(str(error))}") from None
        return one_line(answer)

    def compose(self, message: Message, address: str) -> EmailMessage:
        """The mail. Headers come from one line of text each, so none can add another."""
        render, sender = self._templates.render, self._settings.mail_from or ""
        mail = EmailMessage(policy=SMTP)
        # What looks like an encoded word would be decoded, whatever is in it: other headers, say.
        subject = one_line(render("email.subject.txt", message))
        mail["Subject"] = subject.replace("=?", "= ?")
        mail["From"] = _address(sender)
        mail["To"] = _address(address)
        mail["Date"] = message.at
        mail["Message-ID"] = f"<{message.id}@{sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        if message.unsubscribe_url is not None:
            mail["List-Unsubscribe"] = f"<{message.unsubscribe_url}>"
            mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        mail.set_content(render("email.txt", message))
        mail.add_alternative(render("email.html", message), subtype="html")
        return mail

    @cached_property
    def _server(self) -> MailServer:
        return parse_smtp_url(self._settings.smtp_url)

    def _client(self) -> aiosmtplib.SMTP:
        import aiosmtplib  # noqa: PLC0415 - as above

        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.tls is Tls.IMPLICIT,
            start_tls=server.tls is Tls.STARTTLS,
            timeout=TIME_LIMIT,
        )

    async def _login(self, client: aiosmtplib.SMTP) -> None:
        """A refused password is the deployment's mistake, not the recipient's: it may be mended
        while this is tried again.
        """
        import aiosmtplib  # noqa: PLC0415 - as above

        try:
            await client.login(self._server.user or "", self._server.password or "")
        except aiosmtplib.SMTPAuthenticationError as error:
            raise MailNotTaken(f"the mail server refused the login: {error.code}") from None


def _address(text: str) -> Address:
    return Address(addr_spec=text)


def _judged(code: int, text: str) -> HoldfastError:
    said = f"the mail server answered {code}: {one_line(text)}"
    return Fatal(said) if code in PERMANENT else MailNotTaken(said)
