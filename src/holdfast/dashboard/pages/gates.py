"""Gates: what keeps tasks from starting at once, who holds it, and who waits."""

from __future__ import annotations

from typing import Final

from holdfast.core.gate import GateKind
from holdfast.core.scope import LOOKED_AT, in_words
from holdfast.dashboard.gates import EXPLAINED, in_short
from holdfast.dashboard.page import READ_ALL, Done, Page, Shown, View
from holdfast.definitions.readers import LONGEST_KEY

page = Page("/gates", "gates.html", "Gates", rule=READ_ALL)

AT_ONCE: Final = 50
LONGEST: Final = LONGEST_KEY + 10


@page.read
async def read(view: View) -> Shown | Done:
    if named := view.query.get("name"):  # as links of other pages have it
        return Done(to=view.url(f"/gates/{named}"))
    client = await view.verbs()
    text, after = _text(view, "q").strip(), _text(view, "after")
    kind = view.query.get("kind", "")
    found = await client.gates(kind=_kind(kind), text=text, after=after, limit=AT_ONCE)
    return {
        "gates": [{"gate": each, "short": in_short(each)} for each in found.limits],
        "next": found.next,
        "after": after,
        "text": text,
        "kind": kind,
        "kinds": LOOKED_AT,
        "problem": "" if _is_kind(kind) else f"There is no kind of gate {kind[:40]!r}.",
        "explained": EXPLAINED,
        "in_words": in_words,
        "kept": {"kind": kind or None, "q": text or None},
        "status": 200 if _is_kind(kind) else 422,
    }


def _text(view: View, word: str) -> str:
    """What every store can compare with."""
    return view.query.get(word, "").replace("\0", "")[:LONGEST]


def _is_kind(text: str) -> bool:
    return not text or any(text == each for each in LOOKED_AT)


def _kind(text: str) -> GateKind | None:
    return GateKind(text) if text and _is_kind(text) else None
