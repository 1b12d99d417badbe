"""Whether a message is a plain yes or no."""

from __future__ import annotations

from typing import Final

_YES: Final = frozenset({
    "yes", "y", "yep", "yeah", "yes please", "ok", "okay", "sure", "confirm", "confirmed",
    "correct", "right", "do it", "please do", "go ahead", "sounds good", "that is right", "ja",
    "ja bitte", "genau", "richtig", "mach das", "sí", "si", "claro", "vale", "de acuerdo", "oui",
    "d'accord", "c'est ça", "हाँ", "हां", "जी हाँ", "ठीक है", "是", "是的", "好", "好的",
    "可以", "确认", "对",
})  # fmt: skip
_NO: Final = frozenset({
    "no", "n", "nope", "no thanks", "cancel", "cancel that", "never mind", "nevermind", "stop",
    "don't", "do not", "nein", "nein danke", "abbrechen", "no gracias", "cancela", "non",
    "non merci", "annule", "नहीं", "मत करो", "不", "不是", "不要", "不用", "取消",
})  # fmt: skip


def consent_of(text: str) -> bool | None:
    """True for a yes, False for a no, None for anything else."""
    said = " ".join(text.casefold().replace("’", "'").split()).strip(" .!,。！，")
    if said in _YES:
        return True
    return False if said in _NO else None
