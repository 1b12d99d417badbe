"""A server and a client that knows nothing of the app but its URL, a token and a task's name."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Context, Holdfast, HttpClient, ServiceError
from holdfast.server.running import serve

app = Holdfast()


@app.task(name="shop.count")
async def count(ctx: Context, words: list[str]) -> int:
    ctx.log(f"counting {len(words)} words")
    return len(words)


async def main() -> None:
    ready, stopping = asyncio.get_running_loop().create_future(), asyncio.Event()
    serving = asyncio.create_task(serve(app, port=0, announce=ready.set_result, stopping=stopping))
    url: str = await ready
    _, token = await app.client.tokens.create("example", ["submit", "read"], "1h")

    async with HttpClient(url, token=token) as client:
        sent = await client.submit_async("shop.count", {"words": ["a", "b"]}, priority="high")
        print("accepted:", sent.state)
        await app.run_worker(burst=True)  # elsewhere: holdfast worker module:app
        print("result:", await client.result_async(sent.task_id, timeout="10s"))
        async for event in client.events_async(sent.task_id):
            if event.event == "log":
                print("log:", event.data["detail"])
        try:
            await client.pause_async("default")
        except ServiceError as refused:
            print("refused:", refused.code)

    stopping.set()
    await serving


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder):
        asyncio.run(main())
