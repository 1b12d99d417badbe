"""Reads the Markdown pages of the house: their links, headings and fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`]*)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: ```language title="file.py"."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if not opening:
            continue
        start, indent = at, len(opening["indent"])
        while lines[at].strip() != "```":
            at += 1
        language, _, rest = opening["info"].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        text = "\n".join(line[indent:] for line in lines[start:at]) + "\n"
        yield Block(page, start, language, title[1] if title else None, text)
        at += 1


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines outside fenced blocks and generated parts, with their numbers."""
    fenced = generated = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif "<!-- generated" in line:
            generated = True
        elif "<!-- end generated" in line:
            generated = False
        elif not fenced and not generated:
            yield number, line


def links(page: Path) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            for found in _LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                yield number, found["target"]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = (line for _, line in prose(page) if line.startswith("#"))
    return {_slug(heading.lstrip("#").strip()) for heading in headings}


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"`|\*", "", heading).lower())
    return kept.replace(" ", "-")
