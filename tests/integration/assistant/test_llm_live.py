"""A real endpoint, if somebody names one: `HOLDFAST_TEST_LLM_URL`, `…_KEY` and `…_MODEL`.

HOLDFAST_TEST_LLM_URL=http://localhost:11434/v1 HOLDFAST_TEST_LLM_MODEL=qwen3 pytest …
"""

from __future__ import annotations

import os

import pytest
from tests.integration.assistant.readings import NOW, WEEKDAYS_AT_9, request

from holdfast.assistant.llm import planner_of
from holdfast.assistant.llm.agreeing import same
from holdfast.settings import Settings

URL = os.environ.get("HOLDFAST_TEST_LLM_URL")

pytestmark = pytest.mark.skipif(
    URL is None, reason="no live model: set HOLDFAST_TEST_LLM_URL (and …_KEY, …_MODEL)"
)


@pytest.mark.timeout(180)
async def test_a_live_model_is_heard_and_changes_nothing_that_was_understood() -> None:
    settings = Settings.load(
        llm_url=URL,
        llm_key=os.environ.get("HOLDFAST_TEST_LLM_KEY"),
        llm_model=os.environ.get("HOLDFAST_TEST_LLM_MODEL", "default"),
        llm_timeout=120,
    )

    planned = await planner_of(settings).plan(request())

    assert planned.usage.tokens_out > 0, planned.notes
    assert same(planned.result, WEEKDAYS_AT_9, NOW)
