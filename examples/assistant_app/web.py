"""A small product around the assistant: chat in the browser, tasks beside it, results live.

    python examples/assistant_app/web.py        then open http://127.0.0.1:8421

One process serves the page and runs the tasks; in production a worker runs beside it
(`holdfast worker agent:app`). Who is logged in is the owner of what is made here, and nobody sees
what is somebody else's.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from agent import app as queue  # type: ignore[import-not-found] # beside this file
from fastapi import Cookie, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel, Field

HERE = Path(__file__).parent
FILES = {"": "page.html", "page.js": "page.js", "page.css": "page.css"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"

sessions: dict[str, str] = {}


class Login(BaseModel):
    name: str = Field(min_length=1, max_length=40, pattern=r"^\w[\w .-]*$")


class Message(BaseModel):
    text: str = Field(max_length=8000)
    timezone: str = Field(max_length=60)
    id: str = Field(max_length=60)
    confirm: bool | None = None


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with queue:
        working = asyncio.create_task(queue.run_worker())
        yield
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


web = FastAPI(lifespan=lifespan, openapi_url=None)


def logged_in(session: Annotated[str | None, Cookie()] = None) -> str:
    owner = sessions.get(session or "")
    if owner is None:
        raise HTTPException(401, "log in first")
    return owner


Owner = Annotated[str, Depends(logged_in)]


@web.get("/")
@web.get("/{name}")
async def page(name: str = "") -> Response:
    if name not in FILES:
        raise HTTPException(404)
    return FileResponse(HERE / FILES[name], headers={"content-security-policy": POLICY})


@web.post("/login")
async def login(who: Login, response: Response) -> dict[str, str]:
    session = secrets.token_urlsafe(32)
    sessions[session] = who.name
    response.set_cookie("session", session, httponly=True, samesite="strict")
    return {"name": who.name}


@web.get("/api/me")
async def me(owner: Owner) -> dict[str, str]:
    return {"name": owner}


@web.post("/chat")
async def chat(message: Message, owner: Owner) -> StreamingResponse:
    """What is said, as events: steps while it is understood, then the answer."""
    steps: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()

    async def tell(step: str) -> None:
        await steps.put(("progress", step))

    async def work() -> None:
        said = {"role": "user", "content": message.text, "id": message.id}
        try:
            answer = await queue.assistant.message_async(
                [said], chat_id="web", timezone=message.timezone, owner=owner,
                confirm=message.confirm, tell=tell,
            )  # fmt: skip
            await steps.put(("answer", answer))
        except Exception as error:  # noqa: BLE001 - the page must hear of it, whatever it is
            await steps.put(("problem", str(error)))
        await steps.put(None)

    async def told() -> AsyncIterator[str]:
        working = asyncio.create_task(work())
        while (event := await steps.get()) is not None:
            yield as_event(*event)
        await working

    return StreamingResponse(told(), media_type="text/event-stream")


@web.get("/api/tasks")
async def tasks(owner: Owner) -> list[dict[str, Any]]:
    found = await queue.schedules.list_async(owner=owner)
    return [
        {
            "id": series.id,
            "title": series.about.title,
            "words": series.rule.words,
            "status": series.status,
            "next": None if series.next_at is None else series.next_at.isoformat(),
        }
        for series in found.schedules
    ]


@web.post("/api/tasks/{task_id}/{verb}")
async def steer(task_id: str, verb: str, owner: Owner) -> dict[str, str]:
    series = await queue.schedules.get_async(task_id)
    if series is None or series.about.owner != owner:
        raise HTTPException(404, "there is no such task")
    match verb:
        case "pause":
            await queue.schedules.pause_async(task_id)
        case "resume":
            await queue.schedules.resume_async(task_id)
        case "run":
            await queue.schedules.trigger_async(task_id)
        case "delete":
            await queue.schedules.delete_async(task_id)
        case _:
            raise HTTPException(404)
    return {"done": verb}


@web.get("/api/inbox")
async def inbox(request: Request, owner: Owner) -> StreamingResponse:
    """The results, as they arrive; a browser that comes back says which it saw last."""
    seen = request.headers.get("last-event-id", "0")
    number = int(seen) if seen.isdecimal() else 0

    async def told(last: int) -> AsyncIterator[str]:
        while not await request.is_disconnected():
            for item in await queue.inbox.since_async(owner, last, limit=100):
                last = item.number
                shown = {"title": item.title, "content": item.content, "at": item.created_at}
                yield f"id: {last}\n{as_event('item', shown)}"
            await asyncio.sleep(0.5)

    return StreamingResponse(told(number), media_type="text/event-stream")


def as_event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n"


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8421
    # Streams never end by themselves: they are cut when the program is to end.
    uvicorn.run(web, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)
