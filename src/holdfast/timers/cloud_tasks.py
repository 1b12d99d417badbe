"""Timers of Google Cloud Tasks: each is a task of a queue there, which calls our server.

Names are made of the key and the instant, so that arming twice is arming once. The service keeps a
name for about an hour after its task has run or was deleted, and refuses it meanwhile. A name that
is refused is either armed, or such a grave; `get` tells which, and then the next name is tried. So
no memory is needed here, and any number of processes may arm the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from weakref import WeakKeyDictionary

import grpc
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import AlreadyExists, GoogleAPIError, NotFound
from google.auth.exceptions import GoogleAuthError
from google.cloud.tasks_v2 import CloudTasksAsyncClient, HttpMethod, HttpRequest, OidcToken, Task
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport

from holdfast.errors import TimerUnavailable
from holdfast.timers.address import TimerAddress
from holdfast.timers.signing import sign

MOST_NAMES: Final = 100
"""How often the same key may be cancelled and armed again for the same instant within an hour."""
PATIENCE: Final = 10.0
"""Seconds for one call of the service."""
PAGE: Final = 1000


class CloudTasksTimer:
    """A `Timer`. One for all event loops of a process: each gets a connection of its own."""

    def __init__(self, address: TimerAddress, secrets: Sequence[str] = ()) -> None:
        """The first of the `secrets` signs the calls; they are unsigned where OIDC is used."""
        self.horizon = address.horizon
        self._address = address
        self._secrets = () if address.oidc else tuple(secrets)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, CloudTasksAsyncClient] = (
            WeakKeyDictionary()
        )

    async def arm(self, key: str, at: datetime) -> str:
        """Make a task for this call; a name that is taken tells that there is one, or was."""
        client = self._client()
        with _unavailable():
            for again in range(MOST_NAMES):
                name = self.name_of(key, at, again)
                task = self._task(name, key, at)
                try:
                    await client.create_task(
                        parent=self._address.queue, task=task, retry=None, timeout=PATIENCE
                    )
                except AlreadyExists:
                    if not await self._is_there(client, name):
                        continue
                return name
        raise TimerUnavailable(
            f"the timer {key!r} was cancelled and armed {MOST_NAMES} times within an hour for "
            f"{at.isoformat()}; Cloud Tasks takes no more names for it until that is over"
        )

    async def cancel(self, key: str, name: str | None = None) -> None:
        """Delete the task of that name; without one, all whose name begins as those of the key."""
        client = self._client()
        with _unavailable():
            for each in [name] if name else await self._names_of(client, key):
                try:
                    await client.delete_task(name=each, retry=None, timeout=PATIENCE)
                except NotFound:
                    continue

    async def close(self) -> None:
        """Close the connection of this loop. Those of loops that are gone went with them."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.transport.close()  # type: ignore[no-untyped-call] # theirs

    def name_of(self, key: str, at: datetime, again: int = 0) -> str:
        """What the task of this call is named, tried for the so-manieth time. It begins with a
        hash: names that resemble each other would slow the service down.
        """
        instant = sha256(f"{key} {at.timestamp():.6f}".encode()).hexdigest()[:16]
        suffix = f"-{again}" if again else ""
        return f"{self._prefix(key)}{instant}{suffix}"

    def _prefix(self, key: str) -> str:
        return f"{self._address.queue}/tasks/{sha256(key.encode()).hexdigest()[:32]}-"

    def _task(self, name: str, key: str, at: datetime) -> Task:
        body = json.dumps({"token": sign(self._secrets, key, at)}).encode()
        request = HttpRequest(
            url=self._address.target,
            http_method=HttpMethod.POST,
            headers={"Content-Type": "application/json"},
            body=body,
        )
        if self._address.oidc:
            request.oidc_token = OidcToken(
                service_account_email=self._address.oidc, audience=self._address.audience
            )
        deadline = timedelta(seconds=self._address.deadline)
        return Task(name=name, http_request=request, schedule_time=at, dispatch_deadline=deadline)

    async def _is_there(self, client: CloudTasksAsyncClient, name: str) -> bool:
        try:
            await client.get_task(name=name, retry=None, timeout=PATIENCE)
        except NotFound:
            return False
        return True

    async def _names_of(self, client: CloudTasksAsyncClient, key: str) -> list[str]:
        prefix = self._prefix(key)
        request = {"parent": self._address.queue, "page_size": PAGE}
        found = await client.list_tasks(request=request, retry=None, timeout=PATIENCE)
        return [task.name async for task in found if task.name.startswith(prefix)]

    def _client(self) -> CloudTasksAsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._connected()
        return client

    def _connected(self) -> CloudTasksAsyncClient:
        endpoint = self._address.endpoint
        if self._address.is_insecure:
            channel = grpc.aio.insecure_channel(endpoint or "localhost:8123")
            return CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))
        with _unavailable():
            return CloudTasksAsyncClient(
                client_options=ClientOptions(api_endpoint=endpoint) if endpoint else None
            )


@contextmanager
def _unavailable() -> Iterator[None]:
    """Errors of the library, as ours."""
    try:
        yield
    except (GoogleAPIError, GoogleAuthError) as error:
        raise TimerUnavailable(
            f"Google Cloud Tasks did not take it: {type(error).__name__}: {error}. Nothing is "
            "lost: what has no timer is armed by a later sweep."
        ) from error
