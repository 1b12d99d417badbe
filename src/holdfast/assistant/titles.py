"""What a task is called, and of which category it is, by the user's own words."""

from __future__ import annotations

import re
from typing import Final, Literal, get_args

Category = Literal["REMINDER", "REPORT", "ANALYSIS", "OTHERS"]
CATEGORIES: Final[tuple[str, ...]] = get_args(Category)
LONGEST_TITLE: Final = 60

_ASKING: Final = re.compile(
    r"^(?:(?:please|pls|can you|could you|would you|i want you to|i'd like you to|bitte"
    r"|por favor|s'il te plaît|s'il vous plaît|कृपया|请)[\s,]*)+",
    re.IGNORECASE,
)
_TELLING: Final = re.compile(
    r"^(?:remind me (?:to|about|of|that)?|reminder (?:to|about)"
    r"|erinner[et]? mich(?: daran)?,?(?: an)?|recuérdame|rappelle-moi (?:de|d')?|提醒我)\s*",
    re.IGNORECASE,
)
_REMINDING: Final = re.compile(
    r"\b(?:remind|reminder|wake|ping|nudge|alarm|don't forget|erinner|wecke|recuérda|recordatorio"
    r"|avísame|rappel|réveille)|याद दिला|提醒|叫我",
    re.IGNORECASE,
)
_REPORTING: Final = re.compile(
    r"\b(?:summar|digest|report|brief|recap|overview|list|send me|tell me|show me|read me|email me"
    r"|news|weather|roundup|zusammenfass|bericht|schick|wetter|resumen|resume|informe|envía|lista"
    r"|clima|résum|rapport|envoie|liste|météo)|सारांश|रिपोर्ट|मौसम|总结|报告|汇总|周报|天气",
    re.IGNORECASE,
)
_ANALYSING: Final = re.compile(
    r"\b(?:analy|compar|evaluat|review|investigat|research|monitor|track|audit|check|watch|look for"
    r"|vergleich|prüf|untersuch|überwach|compara|analiz|revisa|vérifi|surveill)"
    r"|तुलना|विश्लेषण|जाँच|जांच|分析|比较|检查|监控",
    re.IGNORECASE,
)


def title_of(purpose: str) -> str:
    """A short title: the purpose without its politeness, cut between words."""
    text = " ".join(purpose.split())
    text = _TELLING.sub("", _ASKING.sub("", text)).strip(" ,.;:!?-–") or text
    if len(text) > LONGEST_TITLE:
        text = text[:LONGEST_TITLE].rpartition(" ")[0] or text[:LONGEST_TITLE]
        text = text.rstrip(" ,.;:-–") + "…"
    return text[:1].upper() + text[1:]


def category_of(text: str) -> Category:
    """Of which category a request is. A reminder to check something is a reminder."""
    if _REMINDING.search(text):
        return "REMINDER"
    analysing, reporting = _ANALYSING.search(text), _REPORTING.search(text)
    if analysing and (not reporting or analysing.start() < reporting.start()):
        return "ANALYSIS"
    return "REPORT" if reporting else "OTHERS"
