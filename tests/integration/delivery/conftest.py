"""Apps that deliver to real receivers on the loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.kit.mail_server import MailServer, mail_server
from tests.kit.receivers import Receiver, running

from holdfast import Holdfast
from holdfast.core.retry import exponential
from holdfast.delivery import delivering

SECRET = "a secret of some length"


class MakeApp(Protocol):
    async def __call__(self, **settings: Any) -> Holdfast: ...


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
async def make_app(sqlite_url: str) -> AsyncIterator[MakeApp]:
    """`await make_app(smtp_url=…)`: an app with a task `write`, which returns what it is given."""
    async with AsyncExitStack() as stack:

        async def made(**settings: Any) -> Holdfast:
            given = {
                "url": sqlite_url,
                "callback_hosts": "127.0.0.1,localhost",
                "callback_secret": SECRET,
                **settings,
            }
            app = Holdfast(**given)

            @app.task(name="write", max_retries=0)
            async def write(result: Any = None, fails: str | None = None) -> Any:
                if fails is not None:
                    raise RuntimeError(fails)
                return result

            return await stack.enter_async_context(app)

        yield made


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "RETRY", exponential(0.01, 1))


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as one:
        yield one
