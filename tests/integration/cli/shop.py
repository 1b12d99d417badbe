"""The app that the commands are tried on."""

from __future__ import annotations

import asyncio

from pydantic import SecretStr

from holdfast.app import Holdfast
from holdfast.definitions.context import Context
from holdfast.errors import Fatal

app = Holdfast()


@app.task(tags=["mail"])
async def send_mail(to: str, copies: int = 1) -> str:
    return f"{copies} to {to}"


@app.task(max_retries=0, tags=["bills"])
async def bill(customer: str) -> None:
    raise ValueError(f"no customer {customer!r}")


@app.task(debounce="1h")
async def reindex(doc: int) -> None: ...


@app.task(throttle="1h")
async def report() -> None: ...


@app.task
async def refuse(n: int) -> None:
    raise Fatal(f"never {n}")


@app.task(queue="steps")
async def steps(ctx: Context, seconds: float) -> str:
    ctx.log("on my way")
    for step in range(1, 5):
        ctx.progress(step, 4, "walking")
        await asyncio.sleep(seconds / 4)
    return "there"


@app.task(secret_fields=["pin"])
async def sign_in(user: str, password: SecretStr, pin: int) -> int:
    return len(password.get_secret_value())
