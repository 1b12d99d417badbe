"""Helpers for packs: lists of words that count up."""

from __future__ import annotations


def numbered(names: str, start: int = 0) -> dict[str, int]:
    """Names parted by spaces, each with its number; other spellings follow behind `|`."""
    return {name: number for number, name in enumerate(names.split(), start)}
