"""E-mail, handed to a real SMTP server."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from tests.integration.delivery.conftest import MakeApp
from tests.kit.mail_server import PASSWORD, USER, MailServer, mail_server
from tests.kit.runs import fire

from holdfast import Holdfast, State
from holdfast.core import delivery as deliveries
from holdfast.delivery.channels import email

FROM = "robot@example.com"
LOGIN = "mailer:pass%20word%2Fwith%3Asigns@"


async def made(make_app: MakeApp, smtp_url: str) -> Holdfast:
    app = await make_app(
        smtp_url=smtp_url,
        mail_from=FROM,
        public_url="https://tasks.example.com/",
        delivery_secret="a secret for unsubscribing",
    )
    await app.recipients.put_async("ann", email="ann@example.com")
    return app


@pytest.fixture
async def app(make_app: MakeApp, mail: MailServer) -> Holdfast:
    return await made(make_app, mail.url())


async def test_a_result_arrives_as_one_mail_in_text_and_html(
    app: Holdfast, mail: MailServer
) -> None:
    call = app.registry["write"].call({"content": "Hello <b>Ann</b>\nhttps://a.example/x?y=1&z=2"})
    run = await fire(app, call, "email", delivery_title="Daily news")

    await app.run_worker(burst=True)

    (got,) = mail.got
    assert (got["Subject"], got["From"], got["To"]) == ("Daily news", FROM, "ann@example.com")
    assert got["Auto-Submitted"] == "auto-generated"
    delivery = await run.delivery("email")
    assert got["Message-ID"] == f"<{delivery.id}@example.com>"
    assert got["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert got["List-Unsubscribe"].startswith("<https://tasks.example.com/unsubscribe?token=")
    text, page = got.iter_parts()
    assert "Hello <b>Ann</b>" in text.get_content()
    shown = page.get_content()
    assert "Hello &lt;b&gt;Ann&lt;/b&gt;<br>" in shown
    assert 'href="https://a.example/x?y=1&amp;z=2"' in shown
    assert (delivery.state, delivery.attempt) == (State.COMPLETED, 1)
    assert (delivery.parent_id, delivery.owner) == (run.id, "ann")


async def test_a_failed_run_says_so_without_a_traceback(app: Holdfast, mail: MailServer) -> None:
    await fire(app, app.registry["write"].call(fails="no such city\nsecret second line"), "email")

    await app.run_worker(burst=True)

    (got,) = mail.got
    text = got.get_body(("plain",))
    assert text is not None
    said = text.get_content()
    assert "This could not be completed." in said
    assert "RuntimeError: no such city" in said
    assert "second line" not in said
    assert "Traceback" not in said


async def test_a_cancelled_run_has_nothing_to_deliver(app: Holdfast, mail: MailServer) -> None:
    run = await fire(app, app.registry["write"].call("x"), "email")
    await app.cancel_async(run.id)

    await app.run_worker(burst=True)

    assert mail.got == []
    delivery = await run.delivery("email")
    assert delivery.state is State.COMPLETED
    assert b"nothing to deliver" in (delivery.result or b"")


@pytest.mark.parametrize("trouble", ["451 later", "421 busy", "hang up"])
async def test_a_passing_trouble_is_recorded_and_tried_again_with_the_same_id(
    app: Holdfast, mail: MailServer, trouble: str
) -> None:
    mail.answers = [trouble, trouble]
    run = await fire(app, app.registry["write"].call("x"), "email")

    await app.run_worker(burst=True)

    assert len(mail.got) == 1
    delivery = await run.delivery("email")
    assert (delivery.state, delivery.attempt) == (State.COMPLETED, 3)
    assert mail.got[0]["Message-ID"] == f"<{delivery.id}@example.com>"
    history = await app.history_async(delivery.id)
    errors = [attempt.error.message for attempt in history.attempts if attempt.error]
    assert len(errors) == 2
    assert trouble == "hang up" or trouble in errors[0].replace(": ", " ")


async def test_an_address_that_is_refused_for_good_is_not_tried_again(
    app: Holdfast, mail: MailServer
) -> None:
    mail.to_recipients = ["550 nobody of that name"]
    run = await fire(app, app.registry["write"].call("x"), "email")

    await app.run_worker(burst=True)

    delivery = await run.delivery("email")
    assert (delivery.state, delivery.attempt) == (State.FAILED, 1)
    assert delivery.error is not None
    assert delivery.error.message == "the mail server answered 550: nobody of that name"


async def test_a_server_that_does_not_answer_is_given_up_and_tried_again(
    app: Holdfast, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(email, "TIME_LIMIT", 0.2)
    monkeypatch.setattr(deliveries, "RETRIES", 1)
    mail.delay = 1.0
    run = await fire(app, app.registry["write"].call("x"), "email")

    await app.run_worker(burst=True)

    delivery = await run.delivery("email")
    assert delivery.state is State.DEAD_LETTER
    assert delivery.error is not None
    assert "Timeout" in delivery.error.message


async def test_a_dead_delivery_can_be_replayed(app: Holdfast, mail: MailServer) -> None:
    mail.answers = ["451 no"] * 10
    run = await fire(app, app.registry["write"].call("x"), "email")
    await app.run_worker(burst=True)
    assert (await run.delivery("email")).state is State.DEAD_LETTER

    await app.replay_async(name="holdfast.deliver")
    await app.run_worker(burst=True)

    assert (await run.delivery("email")).state is State.COMPLETED
    assert len(mail.got) == 1


async def test_a_run_that_is_started_again_before_its_delivery_is_waited_for(
    app: Holdfast, mail: MailServer
) -> None:
    run = await fire(app, app.registry["write"].call("x"), "email")
    await app.cancel_async(run.id)
    await app.retry_async(run.id)

    await app.run_worker(burst=True)

    (got,) = mail.got
    text = got.get_body(("plain",))
    assert text is not None
    assert text.get_content().startswith("x")


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for localhost by an authority that this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


async def test_starttls_comes_before_the_login_and_the_mail(
    make_app: MakeApp, certified: ssl.SSLContext
) -> None:
    with mail_server(starttls=certified, with_login=True) as mail:
        app = await made(make_app, mail.url(query="", login=LOGIN))
        run = await fire(app, app.registry["write"].call("x"), "email")
        await app.run_worker(burst=True)

        assert (await run.delivery("email")).error is None
        assert len(mail.got) == 1
        assert mail.sessions[0].ssl is not None
        assert mail.sessions[0].authenticated


async def test_implicit_tls_is_spoken_from_the_first_byte(
    make_app: MakeApp, certified: ssl.SSLContext
) -> None:
    with mail_server(implicit=certified) as mail:
        app = await made(make_app, mail.url("smtps", query=""))
        await fire(app, app.registry["write"].call("x"), "email")
        await app.run_worker(burst=True)

        assert len(mail.got) == 1


async def test_nothing_is_sent_in_the_clear_where_tls_is_asked_for(
    make_app: MakeApp, mail: MailServer
) -> None:
    app = await made(make_app, mail.url(query=""))
    run = await fire(app, app.registry["write"].call("x"), "email")

    await app.run_worker(burst=True)

    assert mail.got == []
    delivery = await run.delivery("email")
    assert delivery.state is State.DEAD_LETTER
    assert delivery.error is not None
    assert "STARTTLS" in delivery.error.message


async def test_a_refused_password_is_tried_again_and_not_shown(
    make_app: MakeApp, certified: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "RETRIES", 1)  # the server thinks about each for a while
    with mail_server(starttls=certified, with_login=True) as mail:
        app = await made(make_app, mail.url(query="", login=f"{USER}:not-it-at-all@"))
        run = await fire(app, app.registry["write"].call("x"), "email")
        await app.run_worker(burst=True)

        delivery = await run.delivery("email")
        assert delivery.state is State.DEAD_LETTER
        assert delivery.error is not None
        assert delivery.error.message == "the mail server refused the login: 535"
        assert "not-it-at-all" not in repr(app.settings)
    assert PASSWORD not in repr(app.settings)


async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(make_app: MakeApp) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with mail_server(starttls=context) as mail:
        app = await made(make_app, mail.url(query=""))
        run = await fire(app, app.registry["write"].call("x"), "email")
        await app.run_worker(burst=True)

        assert mail.got == []
        delivery = await run.delivery("email")
        assert delivery.state is State.DEAD_LETTER
