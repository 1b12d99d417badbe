"""The page of the docs. It is made of parts, one for each heading, and a run replaces those that it
has measured: hours of figures are not lost because one part is measured again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HEAD = """# Benchmarks

Written by `make bench`; do not edit.
Absolute figures belong to the machine and the minute; the ratios are what counts.
So what is compared takes turns within each round, and the medians of the rounds are compared.
Each part says at which commit, when and on what machine it was measured; producer, workers and \
servers share the cores.
"""
_HEADING = re.compile(r"^## (.+)\n", re.MULTILINE)


def part(title: str, stamp: str, body: str) -> str:
    """The text of one part."""
    return f"## {title}\n\n{stamp}\n{body.strip()}\n"


def split(page: str) -> dict[str, str]:
    """The parts of a page by their titles, each as it stands there."""
    _, *pieces = _HEADING.split(page)
    titles, bodies = pieces[::2], pieces[1::2]
    return {
        title: f"## {title}\n{body.rstrip()}\n" for title, body in zip(titles, bodies, strict=True)
    }


def renewed(page: str, measured: Mapping[str, str], order: Sequence[str]) -> str:
    """The page with the parts that were measured; all others verbatim, if it has them. A part that
    is in no order any more is left out.
    """
    parts = split(page) | dict(measured)
    return "\n".join([HEAD, *(parts[title] for title in order if title in parts)])
