"""How text of users goes into a prompt: as JSON between delimiters that nobody can guess.

A fence keeps a well-behaved model from mistaking a user's words for instructions. It is no
protection against one that does so all the same: that lies in `answers` and `agreeing`, which let
an answer fill the slots of a schedule and nothing else.
"""

from __future__ import annotations

import json
import re
import secrets
import unicodedata
from collections.abc import Mapping
from typing import Any

_PLAIN = re.compile(r"[\x20-\x7e]*")


def fenced(data: Mapping[str, Any], nonce: str | None = None) -> str:
    """The data as one block; nothing in it can look like the end of the block."""
    mark = nonce or secrets.token_hex(8)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"<data-{mark}>\n{_harmless(text)}\n</data-{mark}>"


def _harmless(text: str) -> str:
    """Characters that show nothing (zero-width, direction marks, controls) and angle brackets are
    written as JSON escapes: the model sees them for what they are, and so does whoever reads a log.
    """
    if _PLAIN.fullmatch(text) and "<" not in text and ">" not in text:
        return text
    return "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char in "<>" or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}:
        code = ord(char)
        if code > 0xFFFF:
            high, low = divmod(code - 0x10000, 0x400)
            return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
        return f"\\u{code:04x}"
    return char
