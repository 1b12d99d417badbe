"""Words of a new request that say where its result should go: "… and email it to me".

Only what clearly speaks of the author counts. "Email the invoice to Bob" is something to do, and so
is everything in doubt.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_EMAIL: Final = {
    "en": r"e-?mail", "de": r"e-?mail|mail", "es": r"correo(?: electr[óo]nico)?|e-?mail",
    "fr": r"e-?mail|mail|courriel", "hi": r"ई-?मेल|मेल", "zh": r"(?:电子)?邮件|邮箱|电邮",
}  # fmt: skip
_MOBILE: Final = {
    "en": r"push(?: notifications?)?|(?:my )?(?:smart|mobile |cell )?phone|(?:my )?mobile",
    "de": r"push(?:-?nachricht)?|(?:mein )?(?:handy|smartphone)|mobil",
    "es": r"(?:mi )?(?:m[óo]vil|celular|tel[ée]fono)|push|notificaci[óo]n push",
    "fr": r"(?:mon )?(?:t[ée]l[ée]phone|portable|mobile)|push|notification push",
    "hi": r"(?:मेरे )?(?:मोबाइल|फ़ोन|फोन)", "zh": r"(?:我的)?手机|推送",
}  # fmt: skip
_WEB: Final = {
    "en": r"(?:the |my )?web(?: inbox)?|(?:the |my )?dashboard|(?:my )?app inbox",
    "de": r"(?:das )?web", "es": r"(?:la )?web", "fr": r"(?:le )?web", "hi": r"वेब", "zh": r"网页",
}  # fmt: skip
_OTHER: Final = r"(?P<other>sms|whatsapp|telegram|slack|discord|signal|fax|text message)"
"""What people name and nobody here is: an app may have set it up as a channel of its own."""
_ENDS: Final = {
    "en": (
        rf",? (?:by|via|per|over) {_OTHER}(?: please)?",
        r"AND (?:e-?mail|mail)(?: (?:IT|me))?(?: to me| (?:it|them|the results?))?(?P<email>)",
        r"AND (?:send|push|deliver)(?: me| IT)*(?: to me)? (?:by|via|to|on|as|as a) (?:my )?CH",
        r",? (?:by|via) (?:my )?CH(?: please)?", r",? as an? (?:push notification|CH)",
        r"AND push IT(?: to me)?(?P<push>)",
        r"^(?:send|push|deliver) (?:it|the results?) (?:by|via|to|on) (?:my )?CH",
    ),
    "de": (
        rf",? (?:per|über) {_OTHER}(?: (?:zu)?(?:schicken|senden))?",
        r"AND (?:schicke?|sende|maile?) IT(?: mir)?(?: IT)? (?:per|als|aufs?|an)(?: mein)? CH",
        r"AND maile? IT(?: mir| es| das)?(?P<email>)",
        r",? (?:als push )?(?:und )?(?:per|als|aufs?) CH(?: (?:zu)?(?:schicken|senden))?",
    ),
    "es": (
        rf",? por {_OTHER}",
        r"AND (?:env[íi]a|m[áa]nda)(?:me)?(?:l[oa])?(?: IT)? (?:por|a|al|en|a mi) CH",
        r",? (?:por|al|en mi|a mi) CH",
    ),
    "fr": (
        rf",? (?:par|via) {_OTHER}",
        r"AND envoie(?:-l[ea]s?|-moi)?(?:-moi)?(?: IT)? (?:par|sur|via) CH",
        r",? (?:par|via|sur mon|sur) CH",
    ),
    "hi": (
        r"(?: और)?(?: (?:इसे|उसे|मुझे|परिणाम))* CH (?:पर|से)(?: भेजो| भेज दो| भेजना| भेजें)?",
    ),
    "zh": (
        r"[，,]?\s*(?:并|然后|再)?(?:用|通过|以)\s*CH\s*(?:发送?给我|通知我|发我)",
        r"[，,]?\s*(?:并|然后|再)?(?:把?结果)?(?:发送?|推送)(?:到|至)\s*(?:我的)?CH(?:上)?",
        r"[，,]?\s*(?:并|然后|再)?发CH给我",
    ),
}  # fmt: skip
_AND: Final = {
    "en": r"(?:,? and(?: then)?|,? then|,)", "de": r"(?:,? und|,)", "es": r"(?:,? y|,)",
    "fr": r"(?:,? et|,)", "hi": "", "zh": "",
}  # fmt: skip
_IT: Final = {
    "en": r"(?:it|them|that|this|the results?|the summary|the report|the list)",
    "de": r"(?:es|sie|ihn|das ergebnis|das|mir)", "es": "(?:el resultado)",
    "fr": r"(?:le r[ée]sultat)", "hi": "", "zh": "",
}  # fmt: skip
_OPENS: Final = {
    "en": (
        r"(?:e-?mail|mail) (?:me|us) (?P<email>)",
        r"(?:notify|alert|tell|message|ping|remind) me (?:by|via|on|with an?) (?:my )?CH ",
        r"(?:by|via) CH (?:to|about|of|that) ",
        r"send me an? CH (?:with|about|of) ",
    ),
    "de": (r"(?:maile?) mir (?P<email>)", r"(?:schicke?|sende) mir (?:per|aufs|als) CH "),
    "es": (r"(?:env[íi]ame|m[áa]ndame) (?:por|al) CH ",),
    "fr": (r"envoie-moi (?:par|sur) CH ",),
    "hi": (r"मुझे CH (?:पर|से) ",),
    "zh": (r"(?:用|通过)CH(?:发给我|通知我)",),
}  # fmt: skip
_SPEAKS: Final = re.compile(
    r"^(?:please )?(?:"
    r"(?:send|forward|share|submit|deliver|pass|notify|message|tell|remind|e-?mail|mail)\b(?! me\b)"
    r"|ask|contact|reply|answer|invite|inform|write|confirm|thank|greet|respond|return|request|apply"
    r"|invoice|bill|reach|call|phone|order|book|check in|congratulate|follow up|get in touch|wish"
    r"|pay|cancel|approve|sign|frag|antworte|kontaktier|lade|informier|schreib|bestätig|danke"
    r"|gratulier|ruf|bestell|(?:schick|sende)e?(?! mir\b)|pregunt|respond|invit|inform|escrib"
    r"|confirm|felicit|llam|pide|(?:env[íi]a|manda)\b|demand|r[ée]pond|[ée]cri|remerci|appel"
    r"|command|envoie(?!-moi)|envoyer|f[ée]licit|relanc|pr[ée]ven)",
    re.IGNORECASE,
)
"""Openings that speak to somebody: "ask Bob by email" says how to ask."""
_TO_OTHERS: Final = re.compile(
    r"\b(?:to|with|from|an|von|mit|a|à|avec|con) (?!me\b|my\b|us\b)\w+$", re.IGNORECASE
)


def read_delivery(purpose: str, language: str) -> tuple[str, tuple[str, ...]]:
    """The purpose without the words for where its result goes, and the channels they name."""
    for pattern in _patterns(language, at_end=False):
        opening = pattern.match(purpose)
        if opening is not None:
            return purpose, _channels(opening, language)
    for pattern in _patterns(language, at_end=True):
        found = pattern.search(purpose)
        if found is None:
            continue
        rest = purpose[: found.start()].rstrip(" ,;")
        own_clause = re.match(
            r"[\s,]*(?:and|then|und|y|et|并|然后|再|और)\b", found[0], re.IGNORECASE
        )
        if not rest or (own_clause is None and (_SPEAKS.match(rest) or _TO_OTHERS.search(rest))):
            continue
        return rest, _channels(found, language)
    return purpose, ()


@cache
def _patterns(language: str, *, at_end: bool) -> tuple[re.Pattern[str], ...]:
    table = _ENDS if at_end else _OPENS
    channel = f"(?:{_EMAIL[language]}|{_MOBILE[language]}|{_WEB[language]})"
    joins = (
        r"(?:(?: and| und| y| et|,|和| और)+ ?"
        r"(?:by |via |per |por |par |to |on |als |aufs |al |sur )?(?:my )?"
    )
    several = f"(?P<ch>{channel}{joins}{channel})*)"
    found: list[re.Pattern[str]] = []
    for text in table.get(language, ()):
        whole = text.replace("CH", several).replace("AND", _AND[language])
        whole = whole.replace("IT", _IT[language])
        if at_end:
            before = r"(?:^|(?<=[\w\s.)\"'”»]))" if language == "zh" else r"(?<=\S)(?=[\s,])"
            space = "" if language == "zh" or whole.startswith("(?: ") else r"\s?"
            whole = f"{before}{space}(?:{whole})[\\s.!,]*$"
        found.append(re.compile(whole, re.IGNORECASE))
    return tuple(found)


def _channels(found: re.Match[str], language: str) -> tuple[str, ...]:
    groups = found.groupdict()
    if groups.get("other") is not None:
        return (groups["other"].upper(),)
    if groups.get("email") is not None:
        return ("EMAIL",)
    if groups.get("push") is not None:
        return ("MOBILE",)
    words = groups.get("ch") or found[0]
    table = (("EMAIL", _EMAIL), ("WEB", _WEB), ("MOBILE", _MOBILE))
    return tuple(name for name, by in table if re.search(by[language], words, re.IGNORECASE))
