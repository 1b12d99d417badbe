"""The pages hold together: links lead somewhere, tables name real things, prose keeps its form."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .pages import PAGES, ROOT, anchors, blocks, links, name_of, prose

WEB = ("http://", "https://", "mailto:")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    broken = [
        f"line {line}: {target}"
        for line, target in links(page)
        if not target.startswith(WEB) and not _leads_somewhere(page, target)
    ]

    assert broken == []


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    goal = (page.parent / path).resolve() if path else page
    if not goal.exists():
        return False
    return not anchor or goal.suffix != ".md" or anchor in anchors(goal)


def test_every_page_of_the_docs_can_be_reached_from_the_front_door() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [
            (page.parent / target.partition("#")[0]).resolve()
            for _, target in links(page)
            if not target.startswith(WEB) and not target.startswith("#")
        ]

    lonely = [name_of(page) for page in PAGES if page not in reached]

    assert lonely == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_prose_has_one_sentence_per_line(page: Path) -> None:
    # Diffs then show which sentence changed. Tables and quoted output keep their own form.
    two_sentences = re.compile(r"[a-z)`’0-9][.!?] [A-Z`][a-z`]")
    crowded = [
        f"line {number}: {line}"
        for number, line in prose(page)
        if not line.startswith(("|", "<", "  -", "#"))
        and two_sentences.search(re.sub(r"^\s*(\d+\.|-) ", "", line))
    ]

    assert crowded == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_fragments_are_at_least_python(page: Path) -> None:
    for block in blocks(page):
        if block.language in {"python", "py"}:
            ast.parse(block.text, filename=f"{name_of(page)}:{block.line}")


def test_every_promise_names_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (P\d+) \|(.*)\|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    named = {row: re.findall(r"`?(tests/[\w/]+\.py)::(\w+)`?", rest) for row, rest in rows}
    missing = [
        f"{row}: {path}::{name}"
        for row, tests in named.items()
        for path, name in tests
        if not _has_test(ROOT / path, name)
    ]

    assert [row for row, _ in rows] == [f"P{n}" for n in range(1, 16)]
    assert [row for row, rest in rows if not named[row] and "not in this release" not in rest] == []
    assert missing == []


def _has_test(path: Path, name: str) -> bool:
    """Whether the file defines it; a conformance test comes from the suites that ship."""
    if not path.exists():
        return False
    suites = (ROOT / "src/holdfast/testing/suites").rglob("*.py")
    sources = suites if "conformance" in path.parts else [path]
    wanted = re.compile(rf"\b(?:def|class) {name}\b")
    return any(wanted.search(source.read_text()) for source in sources)


def test_the_changelog_keeps_unreleased_on_top() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()

    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert versions[0] == "Unreleased"
