"""An agent that asks a language model: one durable step, so that a killed run never pays twice.

Alone it talks to a stand-in on this machine. With an endpoint of yours it is a real one:

    HOLDFAST_LLM_URL=https://api.openai.com/v1 HOLDFAST_LLM_KEY=… HOLDFAST_LLM_MODEL=gpt-5-mini \
        python examples/assistant_agent.py "three facts about barnacles"

Needs `pip install 'holdfast[llm]'`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from holdfast import AgentResult, AgentRun, Fatal, Holdfast, Retry

app = Holdfast()

SYSTEM = "Do what the user asks for. Answer in plain text, briefly."
LONGEST = 100_000
EVERY = 200
"""Characters between two reports of progress."""


async def answer(run: AgentRun) -> AgentResult:
    """What is recorded by the step is there in the next attempt, with what it cost."""
    run.progress("Asking the model")
    content = await run.step("answer", ask, run)
    return AgentResult(content=content)


async def ask(run: AgentRun) -> str:
    said = [
        {"role": each.role, "content": each.content}
        for each in run.messages
        if each.role in ("user", "assistant")
    ]
    messages = [{"role": "system", "content": SYSTEM}, *said]
    messages.append({"role": "user", "content": run.purpose})
    content, reported, is_whole = "", 0, False
    async for event in stream(messages):
        for choice in event.get("choices") or ():
            content += choice.get("delta", {}).get("content") or ""
            is_whole = is_whole or choice.get("finish_reason") is not None
        if usage := event.get("usage"):
            tokens = usage["prompt_tokens"], usage["completion_tokens"]
            run.usage(1, tokens_in=tokens[0], tokens_out=tokens[1])
        if len(content) >= reported + EVERY:
            reported = len(content)
            run.progress(f"Writing: {reported} characters")
        if len(content) > LONGEST:
            raise Fatal(f"the model wrote more than {LONGEST} characters")
    if not is_whole:
        raise ConnectionError("the answer stopped in the middle; the next attempt asks again")
    return content


async def stream(messages: list[dict[str, str]]) -> AsyncIterator[dict[str, Any]]:
    """The events of one streamed answer."""
    settings = app.settings
    key = {"authorization": f"Bearer {settings.llm_key}"} if settings.llm_key else {}
    body = {
        "model": settings.llm_model or "stand-in",
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with (
        httpx.AsyncClient(timeout=60) as client,
        client.stream(
            "POST", f"{settings.llm_url or STAND_IN}/chat/completions", json=body, headers=key
        ) as response,
    ):
        refuse(response.status_code, response.headers.get("retry-after", ""))
        async for line in response.aiter_lines():
            data = line.removeprefix("data:").strip()
            if line.startswith("data:") and data != "[DONE]":
                yield json.loads(data)


def refuse(status: int, wait: str) -> None:
    """A busy endpoint is asked again later, a wrong key never. Its words stay out of the history:
    some endpoints repeat the key in them.
    """
    if status == 429 or status >= 500:
        raise Retry(f"the endpoint said {status}", after=int(wait) if wait.isdecimal() else 5)
    if status != 200:
        raise Fatal(f"the endpoint said {status}: look at llm_url, llm_key and llm_model")


assistant = app.agent(name="assistant", timeout="10m")(answer)

# -- without an endpoint ------------------------------------------------------------------------


class StandIn(BaseHTTPRequestHandler):
    """Streams one sentence, as an OpenAI-compatible endpoint does."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for word in ("Three", "mails,", "none", "of", "them", "urgent."):
            self.say({"choices": [{"delta": {"content": f"{word} "}}]})
        self.say({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        self.say({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 8}})
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


STAND_IN = ""


async def main(purpose: str) -> None:
    async with app:
        handle = await assistant.submit_async(purpose=purpose)
        working = asyncio.create_task(app.run_worker())
        done = await handle
        print(done["content"].strip())
        print("steps:", ", ".join(done["steps"]))
        print("tokens:", done["usage"]["tokens_in"], "in,", done["usage"]["tokens_out"], "out")
        working.cancel()
        await asyncio.wait([working])


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder):
        server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        STAND_IN = f"http://127.0.0.1:{server.server_port}/v1"
        asyncio.run(main(sys.argv[1] if sys.argv[1:] else "Summarise my inbox"))
        server.shutdown()
        server.server_close()
