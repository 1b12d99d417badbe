"""The planner that asks a language model, and believes it only as far as it can be checked.

`planner.py` asks and decides; `prompt.py`, `fencing.py` and `schema.py` are what the model is told,
`answers.py`, `titles.py` and `compiling.py` what is made of what it says, `agreeing.py` what comes
of two readings, `endpoint.py` the wire.
"""

from __future__ import annotations

from holdfast.assistant.llm.planner import LLMPlanner
from holdfast.assistant.offline import OfflinePlanner
from holdfast.ports.planner import Planner
from holdfast.settings import Settings

__all__ = ["LLMPlanner", "planner_of"]


def planner_of(settings: Settings) -> Planner:
    """The planner that the settings ask for: with a model where `llm_url` names one."""
    offline = OfflinePlanner()
    return offline if settings.llm_url is None else LLMPlanner(settings, offline)
