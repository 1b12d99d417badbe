"""The assistant: plain words in, schedules out.

`parse` reads a request without a model. `slots.py` holds what a request says, `compiler.py` turns
that into a schedule, `language/` reads sentences with the help of language packs.
"""

from __future__ import annotations

from holdfast.assistant.parsing import parse

__all__ = ["parse"]
