"""The queue of the product, and the agent that does what people ask for.

With HOLDFAST_LLM_URL it asks a language model; without one it answers by itself, so that the
example runs anywhere.
"""

from __future__ import annotations

from holdfast import AgentResult, AgentRun, Holdfast, Usage

app = Holdfast()


@app.agent(name="assistant", timeout="5m", max_retries=2)
async def assistant(run: AgentRun) -> AgentResult:
    """Do what was asked for. Each step is remembered: a run that is killed does not pay twice."""
    run.progress("Reading what you asked for")
    asked = [message.content for message in run.messages if message.role == "user"]
    run.progress("Writing the answer")
    content = await run.step("write", _write, run.purpose, len(asked))
    return AgentResult(content=content, usage=Usage(units=1, tokens_in=len(run.purpose.split())))


async def _write(purpose: str, messages: int) -> str:
    return f"You asked for this: {purpose}\n\nDone. (We have spoken {messages} times in this chat.)"
