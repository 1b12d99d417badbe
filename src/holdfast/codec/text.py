"""Text that every store can hold, from anyone: an exception, a worker in another language."""

from __future__ import annotations

MESSAGE_LIMIT = 4 * 1024
TRACEBACK_LIMIT = 16 * 1024


def storable(text: str, limit: int) -> str:
    """Make text that every store can hold, cutting out the middle of what is too long."""
    text = text.replace("\x00", "\\0")
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[head - limit :]}"
