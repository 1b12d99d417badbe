"""Texts that come from outside and may hold what BSON cannot."""

from __future__ import annotations


def safe_text(text: str) -> str:
    """Text as MongoDB can keep it: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def can_be_text(text: str) -> bool:
    """Whether there can be such text in the database at all."""
    return safe_text(text) == text
