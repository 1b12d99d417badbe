"""How German forms words: numbers, endings, and words written together."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Value, Words
from holdfast.assistant.language.packs.forms import numbered
from holdfast.assistant.language.tokens import fold

_FEW: Final = numbered("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf")
_ENDINGS: Final = ("e", "en", "er", "es", "em")
WEEKDAYS: Final = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
PARTS: Final = {
    "morgen": "morning",
    "früh": "morning",
    "vormittag": "morning",
    "mittag": "noon",
    "nachmittag": "afternoon",
    "abend": "evening",
    "nacht": "night",
}


def numbers() -> dict[str, int]:
    """The number words below 101."""
    teens = ("drei", "vier", "fünf", "sech", "sieb", "acht", "neun")
    tens = ("zwanzig", "dreißig|dreissig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig")
    found = dict(_FEW)
    found |= {f"{name}zehn": 13 + place for place, name in enumerate(teens)}
    for place, names in enumerate((*tens, "neunzig"), 2):
        found[names] = place * 10
        for one, unit in enumerate(("ein", *list(_FEW)[2:10]), 1):
            found["|".join(f"{unit}und{each}" for each in names.split("|"))] = place * 10 + one
    return found | {"zwo": 2, "hundert|einhundert": 100}


def compounds() -> dict[str, tuple[str, ...]]:
    """Sonntagabend, Dreiviertelstunde, Monatsende; keys are folded as tokens are."""
    found: dict[str, tuple[str, ...]] = {
        fold(f"{day}{part}{ending}"): (f"{day}{ending}", fold(part))
        for day in (*WEEKDAYS, "sonnabend")
        for part in PARTS
        for ending in ("", "s")
    }
    found |= {
        "dreiviertelstunde": ("dreiviertel", "stunde"),
        "viertelstunde": ("viertel", "stunde"),
        "halbstunde": ("halb", "stunde"),
    }
    for period in ("monat", "quartal", "jahr"):
        found[f"{period}sende"] = ("ende", "des", f"{period}s")
        found[f"{period}sanfang"] = ("anfang", "des", f"{period}s")
        found[f"{period}sbeginn"] = ("anfang", "des", f"{period}s")
    return found


def declined(*stems: str) -> str:
    """Stems with every ending of an adjective."""
    return "|".join(stem + ending for stem in stems for ending in _ENDINGS)


_ORDINALS: Final = numbered(
    "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft dreizehnt vierzehnt "
    "fünfzehnt sechzehnt siebzehnt achtzehnt neunzehnt zwanzigst einundzwanzigst zweiundzwanzigst "
    "dreiundzwanzigst vierundzwanzigst fünfundzwanzigst sechsundzwanzigst siebenundzwanzigst "
    "achtundzwanzigst neunundzwanzigst dreißigst einunddreißigst",
    1,
)


def ordinals() -> dict[str, int]:
    """First to thirty-first, with every ending."""
    return {declined(stem): number for stem, number in _ORDINALS.items()}


def with_plain_letters(words: Words) -> Words:
    """Words with umlauts also as they are typed without: "taeglich", "fuer", "ausser"."""
    found: dict[str, dict[str, Value]] = {}
    for kind, entries in words.items():
        found[kind] = {}
        for spellings, value in entries.items():
            plain = spellings
            for letter, typed in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
                plain = plain.replace(letter, typed)
            found[kind][spellings if plain == spellings else f"{spellings}|{plain}"] = value
    return found
