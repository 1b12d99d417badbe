"""An app whose handlers log in their own words, for the tests of the log."""

from __future__ import annotations

import asyncio
import logging

import structlog

from holdfast import Holdfast

app = Holdfast()
plain = logging.getLogger("shop.orders")
fancy = structlog.get_logger("shop.mail")


@app.task(name="on_the_loop")
async def on_the_loop(word: str) -> None:
    await asyncio.sleep(0)
    plain.info("loop %s", word)
    fancy.info("mailed", size=3)


@app.task(name="in_a_thread")
def in_a_thread(word: str) -> None:
    plain.info("thread %s", word)
    fancy.info("mailed", size=3)


@app.task(name="in_a_process", executor="process")
def in_a_process(word: str) -> None:
    plain.info("process %s", word)
    fancy.info("mailed", size=3)


@app.task(name="fails", max_retries=0)
def fails() -> None:
    try:
        raise KeyError("inner")
    except KeyError:
        plain.exception("could not\nfinish")
    raise ValueError("outer")


@app.task(name="whispers")
async def whispers() -> None:
    plain.debug("psst")


@app.task(name="about_another")
async def about_another() -> str:
    """Logs of another task, in words that Holdfast has for its own, and submits it."""
    plain.info("looked at it", extra={"task_id": 99, "attempt": "first"})
    other = await whispers.submit_async()
    return other.id
