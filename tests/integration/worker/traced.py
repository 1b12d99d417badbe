"""An app whose tasks submit others, from every kind of place; its store is in HOLDFAST_URL."""

from __future__ import annotations

import asyncio

from holdfast import Holdfast

app = Holdfast()


@app.task(name="child")
def child() -> None: ...


@app.task(name="on_the_loop")
async def on_the_loop() -> str:
    return (await asyncio.create_task(child.submit_async())).id


@app.task(name="in_a_thread")
def in_a_thread() -> str:
    return child.submit().id


@app.task(name="in_a_process", executor="process")
def in_a_process() -> str:
    return app.submit_many([child.call()])[0].id


@app.task(name="on_a_loop_in_a_process", executor="process")
async def on_a_loop_in_a_process() -> str:
    return (await child.submit_async()).id
