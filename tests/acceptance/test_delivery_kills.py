"""kill -9 between sending and recording: the receiver sees one id, the store one delivery."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.stage import until
from tests.kit.mail_server import mail_server
from tests.kit.receivers import Receiver, running
from tests.kit.runs import Run, fire

from holdfast import Holdfast, State
from holdfast.core.task import Cause

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.acceptance]


def deliver_through_a_kill(folder: Path, channel: str, smtp_url: str, webhook_url: str) -> Run:
    """The run that `holdfast worker` has run and delivered, dying once in between."""
    url = f"sqlite:///{folder}/tasks.db"
    app = Holdfast(url=url, callback_hosts="127.0.0.1", callback_secret="a secret of some length")

    @app.task(name="write", max_retries=0)
    async def write(text: str) -> None: ...

    async def begin() -> Run:
        await app.recipients.put_async("ann", email="ann@example.com", webhook_url=webhook_url)
        return await fire(app, write.call("hello"), channel)

    with app:
        stored = app.wait_for(begin())
        environment = {
            **os.environ,
            "HOLDFAST_URL": url,
            "HOLDFAST_SMTP_URL": smtp_url,
            "HOLDFAST_MAIL_FROM": "robot@example.com",
            "POST_OFFICE_MARK": str(folder / "died"),
        }
        command = [sys.executable, "-m", "holdfast.cli.main", "worker"]
        command += [str(Path(__file__).with_name("post_office.py"))]
        with (folder / "worker.log").open("wb") as log:
            worker = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
        try:
            until(lambda: app.wait_for(stored.delivery(channel)).state is State.COMPLETED)
        finally:
            worker.terminate()
            worker.wait(60)
        check_history(app, stored, channel)
    assert (folder / "died").exists()
    return stored


def check_history(app: Holdfast, stored: Run, channel: str) -> None:
    """One end was recorded, and the second start has its cause."""
    delivery = app.wait_for(stored.delivery(channel))
    history = app.history(delivery.id)
    assert [attempt.ended for attempt in history.attempts] == ["worker_lost", "completed"]
    assert delivery.cause is Cause.WORKER_LOST
    assert app.get(stored.id).attempt == 1


def test_a_mail_that_was_sent_twice_is_the_same_mail(tmp_path: Path) -> None:
    with mail_server() as mail:
        deliver_through_a_kill(tmp_path, "email", mail.url(), "http://127.0.0.1:1/")

        assert len(mail.got) == 2
        assert len({each["Message-ID"] for each in mail.got}) == 1


def test_a_webhook_that_was_called_twice_got_one_delivery(tmp_path: Path) -> None:
    with running(Receiver()) as receiver:
        deliver_through_a_kill(tmp_path, "webhook", "smtp://localhost:1", receiver.url)

        assert len(receiver.got) == 2
        assert len({each.headers["Holdfast-Delivery"] for each in receiver.got}) == 1
        assert len({each.body for each in receiver.got}) == 1


def test_an_inbox_has_one_item(tmp_path: Path) -> None:
    deliver_through_a_kill(tmp_path, "inbox", "smtp://localhost:1", "http://127.0.0.1:1/")

    with Holdfast(url=f"sqlite:///{tmp_path}/tasks.db") as app:
        (item,) = app.inbox.list("ann").items
        assert (item.number, item.content) == (1, "hello")
