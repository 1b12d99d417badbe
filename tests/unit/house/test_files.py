"""The files keep the size, the words and the licence of the house."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from .pages import ROOT, name_of

SOURCES = sorted(path for at in ("src", "tests/kit") for path in (ROOT / at).rglob("*.py"))
LONGEST = 500
"""A file this long has a second subject. There is no list of exceptions yet; keep it that way."""


def test_no_source_file_outgrows_its_subject() -> None:
    lengths = {name_of(source): len(source.read_text().splitlines()) for source in SOURCES}

    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_every_module_says_what_it_is_for() -> None:
    texts = {name_of(source): source.read_text().strip() for source in SOURCES}

    assert [name for name, text in texts.items() if text and not text.startswith('"""')] == []


def test_no_two_files_of_tests_share_the_name_they_are_imported_by() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))

    shared = {name for name, count in Counter(map(imported_as, files)).items() if count > 1}

    assert [name_of(file) for file in files if imported_as(file) in shared] == []


def imported_as(file: Path) -> str:
    """From the outermost folder that is a package, as pytest names what it collects."""
    parts = [file.stem]
    for folder in file.parents:
        if not (folder / "__init__.py").exists():
            break
        parts.append(folder.name)
    return ".".join(reversed(parts))


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    place = re.compile(r"(?<![\w.$}])/(?:home|root|Users|work)/\w+")
    texts = [
        path
        for folder in ("src", "tests", "docs", "examples", "scripts", "bench", ".ci")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".sql", ".toml", ".txt", ""} and path.is_file()
    ]

    found = [name_of(path) for path in texts if place.search(path.read_text())]

    assert found == [], "write the path relative to the clone, or take it from a setting"


def test_the_licence_is_the_whole_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_text()

    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_generated_reference_is_up_to_date() -> None:
    command = [sys.executable, "scripts/reference.py", "--check"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
