"""Every code that doctor may say is explained, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [
    *(ROOT / "src/holdfast/cli" / name for name in ("doctor.py", "findings.py", "deployed.py")),
    *(ROOT / "src/holdfast/stores").rglob("checks.py"),
]
PAGE = ROOT / "docs/how-to/check-and-watch.md"


def test_the_page_explains_every_code_and_no_other() -> None:
    said = {"store_check"}
    for source in SOURCES:
        said |= set(re.findall(r'Level\.\w+,\s*"(\w+)"', source.read_text()))
        said |= set(re.findall(r'HTTP: \(\s*"(\w+)"', source.read_text()))
        said |= set(re.findall(r'(?:CALLBACKS|MIRROR): \(\s*"(\w+)"', source.read_text()))
        for words in re.findall(r'code=((?:"\w+"| if idle else )+)', source.read_text()):
            said |= set(re.findall(r'"(\w+)"', words))
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.read_text(), re.MULTILINE)
    explained = {code for row in rows for code in re.findall(r"\w+", row)} - {"p", "d", "r"}

    assert explained == said
