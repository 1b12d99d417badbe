"""Zones by the names that people use: cities, countries, regions, abbreviations, UTC offsets.

Every city of the tz database is known by its name there; the table adds cities and regions that
have no zone of their own, and what packs of other languages call them.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

_PLACES: Final[Mapping[str, str]] = {
    "Europe/Berlin": "cet|cest|central european|germany|german|munich münchen|hamburg|cologne köln|"
    "frankfurt|stuttgart|deutschland|deutscher|berliner|柏林|德国|बर्लिन|berlín",
    "Europe/London": "bst|uk|united kingdom|britain|british|england|scotland|wales|edinburgh|"
    "manchester|greenwich|londres|londoner|londons|伦敦|英国|लंदन",
    "Europe/Paris": "france|french|lyon|marseille|toulouse|nice|pariser|巴黎|法国|पेरिस|parís",
    "Europe/Madrid": "spain|spanish|barcelona|valencia|sevilla|seville|españa|espagne|马德里",
    "Europe/Rome": "italy|italian|milan|milano|naples|turin|roma|罗马",
    "Europe/Lisbon": "portugal|porto|lisboa|wet",
    "Europe/Vienna": "austria|wien|wiener|österreich",
    "Europe/Zurich": "switzerland|swiss|zürich|geneva|genf|basel|bern|schweiz",
    "Europe/Amsterdam": "netherlands|dutch|holland|rotterdam",
    "Europe/Brussels": "belgium|brüssel|bruxelles",
    "Europe/Warsaw": "poland|krakow|kraków|warschau",
    "Europe/Prague": "czechia|czech republic|prag",
    "Europe/Stockholm": "sweden|swedish",
    "Europe/Oslo": "norway|norwegian",
    "Europe/Copenhagen": "denmark|danish",
    "Europe/Helsinki": "finland|finnish",
    "Europe/Dublin": "ireland|irish",
    "Europe/Athens": "greece|greek|eet|eest|athen",
    "Europe/Moscow": "msk|russia|moscú|moskau|莫斯科",
    "Europe/Kyiv": "ukraine|kiev",
    "Europe/Istanbul": "turkey|ankara",
    "America/New_York": "est|edt|et|eastern|us eastern|nyc|new york city|boston|miami|atlanta|"
    "washington|washington dc|philadelphia|orlando|nueva york|new yorker|纽约|न्यूयॉर्क|east coast",
    "America/Chicago": "cst|cdt|ct|central|us central|dallas|houston|austin|san antonio|"
    "minneapolis|milwaukee|kansas city|new orleans|nashville|芝加哥",
    "America/Denver": "mst|mdt|mt|mountain|us mountain|salt lake city|albuquerque|colorado",
    "America/Phoenix": "arizona",
    "America/Los_Angeles": "pst|pdt|pt|pacific|us pacific|san francisco|seattle|portland|"
    "san diego|las vegas|california|silicon valley|洛杉矶|旧金山|los ángeles|west coast",
    "America/Anchorage": "alaska",
    "Pacific/Honolulu": "hst|hawaii|honolulu",
    "America/Toronto": "ontario|ottawa|montreal|montréal|quebec",
    "America/Vancouver": "british columbia",
    "America/Halifax": "atlantic",
    "America/Mexico_City": "mexico|méxico|ciudad de méxico",
    "America/Sao_Paulo": "brazil|brasil|são paulo|rio|rio de janeiro|brasilia",
    "America/Argentina/Buenos_Aires": "argentina",
    "America/Bogota": "colombia|bogotá",
    "America/Lima": "peru|perú",
    "America/Santiago": "chile",
    "Africa/Johannesburg": "south africa|cape town",
    "Africa/Cairo": "egypt",
    "Africa/Lagos": "nigeria",
    "Africa/Nairobi": "kenya",
    "Asia/Kolkata": "ist|india|indian|mumbai|bombay|delhi|new delhi|bangalore|bengaluru|chennai|"
    "hyderabad|pune|भारत|दिल्ली|मुंबई|印度",
    "Asia/Shanghai": "china|chinese|beijing|peking|pekín|shenzhen|guangzhou|北京|上海|中国",
    "Asia/Hong_Kong": "hk|hkt|香港",
    "Asia/Taipei": "taiwan|台北|台湾",
    "Asia/Tokyo": "tokioter|jst|japan|japanese|osaka|kyoto|tokio|东京|日本|टोक्यो",
    "Asia/Seoul": "kst|korea|south korea|首尔",
    "Asia/Singapore": "sgt|新加坡|सिंगापुर",
    "Asia/Dubai": "uae|abu dhabi|gst|迪拜|दुबई",
    "Asia/Riyadh": "saudi arabia",
    "Asia/Jerusalem": "israel",
    "Asia/Karachi": "pakistan|pkt",
    "Asia/Dhaka": "bangladesh",
    "Asia/Kathmandu": "nepal",
    "Asia/Bangkok": "thailand",
    "Asia/Jakarta": "indonesia",
    "Asia/Manila": "philippines",
    "Asia/Ho_Chi_Minh": "vietnam|hanoi",
    "Australia/Sydney": "aest|aedt|aet|悉尼|सिडनी|sidney|canberra",
    "Australia/Melbourne": "墨尔本",
    "Australia/Brisbane": "queensland",
    "Australia/Perth": "awst",
    "Pacific/Auckland": "new zealand|nzt|nzst|nzdt|wellington",
    "UTC": "utc|zulu|gmt|coordinated universal|universal|greenwich mean|协调世界时|世界时",
}
ZONE_CODES: Final = frozenset({
    "utc", "gmt", "est", "edt", "cst", "cdt", "mst", "mdt", "pst", "pdt", "et", "ct", "mt", "pt",
    "cet", "cest", "eet", "eest", "wet", "bst", "ist", "jst", "kst", "aest", "aedt", "msk", "hst",
    "sgt", "hkt", "zulu",
})  # fmt: skip
"""Names that are zones also without the word "time" behind them."""
_OFFSET: Final = re.compile(r"(?:utc|gmt)\s?([+-])\s?0?(\d{1,2})(?::?00)?")
_NOT_PLACES: Final = frozenset({
    "factory", "localtime", "posixrules", "universal", "zulu", "navajo", "christmas", "easter",
    "reunion",
})  # fmt: skip
"""Names in the tz database that people use for other things."""


@lru_cache(maxsize=1)
def names() -> Mapping[str, str]:
    """Every known name, in lower case, with its IANA name."""
    found: dict[str, str] = {}
    for iana in sorted(zoneinfo.available_timezones()):
        area, _, tail = iana.rpartition("/")
        if not area or area.startswith(("Etc", "posix", "right", "SystemV", "US", "Mexico")):
            continue
        found.setdefault(tail.replace("_", " ").lower(), iana)
        found[iana.lower()] = iana
        found[iana.replace("_", " ").lower()] = iana
    for iana, words in _PLACES.items():
        found[iana.rpartition("/")[2].replace("_", " ").lower()] = iana
        for word in words.split("|"):
            found[word] = iana
    for name in _NOT_PLACES:
        found.pop(name, None)
    found["universal"] = "UTC"
    return found


def find_zone_name(said: str) -> str | None:
    """The IANA name of a place or zone as people call it; None if it is not known."""
    wanted = " ".join(said.lower().replace("_", " ").split())
    match = _OFFSET.fullmatch(wanted)
    if match is not None:
        hours = int(match[2])
        if hours == 0:
            return "UTC"
        if hours > 14:
            return None
        return f"Etc/GMT{'-' if match[1] == '+' else '+'}{hours}"
    return names().get(wanted)
