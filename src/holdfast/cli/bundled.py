"""The app that `holdfast ask` works with where nobody brings one: reminders, answers of a model.

    holdfast ask "every weekday at 9 three facts about barnacles" --tz Europe/Berlin
    holdfast worker holdfast.cli.bundled:app

With `llm_url` a run asks the model there, once however often it is killed. Without one it reminds:
its result is what it was asked for.
"""

from __future__ import annotations

from holdfast.agents.run import AgentResult, AgentRun
from holdfast.app import Holdfast
from holdfast.errors import HoldfastError

app = Holdfast()

SYSTEM = "Do what the user asks for. Answer in plain text, briefly."
PATIENCE = 120.0


@app.agent(name="assistant", timeout="5m", max_retries=3)
async def assistant(run: AgentRun) -> AgentResult:
    """Do what people asked for in words."""
    if app.settings.llm_url is None:
        return AgentResult(content=run.purpose)
    run.progress("Asking the model")
    return AgentResult(content=await run.step("answer", ask, run))


async def ask(run: AgentRun) -> str:
    """The model's answer; what it took is told of."""
    import httpx  # noqa: PLC0415 - the extra `llm`

    settings = app.settings
    said = [
        {"role": each.role, "content": each.content}
        for each in run.messages
        if each.role in ("user", "assistant")
    ]
    messages = [{"role": "system", "content": SYSTEM}, *said]
    messages.append({"role": "user", "content": run.purpose})
    headers = {"authorization": f"Bearer {settings.llm_key}"} if settings.llm_key else {}
    body = {"model": settings.llm_model or "default", "messages": messages}
    async with httpx.AsyncClient(timeout=PATIENCE, headers=headers) as client:
        answer = await client.post(f"{settings.llm_url}/chat/completions", json=body)
    if answer.status_code != 200:
        raise HoldfastError(f"the model's endpoint answered with status {answer.status_code}")
    found = answer.json()
    used = found.get("usage") or {}
    run.usage(
        1,
        tokens_in=int(used.get("prompt_tokens", 0)),
        tokens_out=int(used.get("completion_tokens", 0)),
    )
    return str(found["choices"][0]["message"]["content"])
