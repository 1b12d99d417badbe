"""The app that the files beside this one run until it is yours."""

import asyncio

from holdfast import Holdfast

app = Holdfast()


@app.task(queue="mail")
async def send_mail(to: str, seconds: float = 0.1) -> str:
    """Take as long as a mail server would."""
    await asyncio.sleep(seconds)
    return f"sent to {to}"
