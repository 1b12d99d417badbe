"""French."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Pack, Words
from holdfast.assistant.language.packs.forms import numbered
from holdfast.assistant.language.packs.french_updates import UPDATES
from holdfast.assistant.slots import ANY_DAY, WORKDAY

_NUMBERS: Final = numbered(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
)
_WEEKDAYS: Final = ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche")
_PARTS: Final = {"matin": "morning", "après-midi": "afternoon", "soir": "evening", "nuit": "night"}
_THIS: Final = {"matin": "ce", "après-midi": "cet", "soir": "ce", "nuit": "cette"}


def _dayparts() -> dict[str, tuple[int, str]]:
    found = {f"{_THIS[name]} {name}": (0, part) for name, part in _PARTS.items()}
    found["cette après-midi"] = (0, "afternoon")
    for number, day in ((1, "demain"), (2, "après-demain"), (2, "après demain")):
        for name, part in _PARTS.items():
            found[f"{day} {name}|{day} dans la {name}|{day} en {name}"] = (number, part)
    return found


_WORDS: Final[Words] = {
    "num": _NUMBERS
    | {"une": 1, "dix-sept": 17, "dix-huit": 18, "dix-neuf": 19, "vingt": 20, "trente": 30,
       "quarante": 40, "cinquante": 50, "soixante": 60, "soixante-dix": 70,
       "quatre-vingts|quatre-vingt": 80, "quatre-vingt-dix": 90, "cent": 100, "quinzaine": 15},
    "number_and": {"et": True},
    "one": {"un|une": 1},
    "onehalf": {"trois quarts d|trois quarts de": 0.75},
    "roughly": {"exactement|environ|à peu près|pile|précisément|à peine": True},
    "that": {"que|qu|comment|combien": True},
    "half": {"demi|demie|demi-|la demie": True},
    "quarter": {"quart": 15},
    "quarter_unit": {"quart|un quart": True},
    "plus": {"et": True},
    "minus": {"moins": True},
    "oclock": {"h": True},
    "clock": {
        "midi et demi|midi et demie|midi trente": (12, 30, 0, False),
        "midi et quart": (12, 15, 0, False),
        "midi moins le quart": (11, 45, 0, False),
        "minuit et demi|minuit et demie": (0, 30, 0, True),
    },
    "at": {"à|vers|aux environs de|autour de": True},
    "part": {
        "matin|matins|du matin|le matin|au matin|dans la matinée|matinée|de bon matin": "morning",
        "midi|midis|le midi|du midi": "noon",
        "après-midi|l'après-midi|de l'après-midi|dans l'après-midi|après midi": "afternoon",
        "soir|soirs|du soir|le soir|au soir|en soirée|dans la soirée|soirée": "evening",
        "nuit|nuits|de la nuit|la nuit|dans la nuit": "night",
        "minuit": "midnight",
        "en fin de journée|fin de journée|à la fin de la journée": "end_of_day",
    },
    "part_after": {
        "du matin|le matin|matin|de l'après-midi|l'après-midi|du soir|le soir|soir|de la nuit"
        "|la nuit": True,
    },
    "date_det": {"le": True},
    "det": {"le|la|les|l": True},
    "on": {"le|en|au|à": True},
    "of": {"de|du|des|d|de la|de l": True},
    "in_period": {"en|au|dans": True},
    "monthly_of": {"du mois": True},
    "owner": {"mon|ma|mes|notre|nos|son|sa|ses|ton|ta|votre|leur": True},
    "period": {"du mois|de mois": ("month", 0), "d'année|de l'année": ("year", 0)},
    "and": {"et|et à": True},
    "or": {"ou": True},
    "comma": {",|;": True},
    "from": {"de|du|depuis": True},
    "between": {"entre": True},
    "range": {"à|au|jusqu'à|-": True},
    "until": {"jusqu'à|jusqu'au|jusqu'en|jusqu'à la|jusqu'au dernier": True},
    "weekday": {
        f"{name}|{name}s|le {name}|les {name}s": number for number, name in enumerate(_WEEKDAYS)
    },
    "plural": {
        "en semaine|jours ouvrés|les jours ouvrés|jours ouvrables|jours de semaine|week-ends"
        "|weekends"
        "|les week-ends|le week-end|le weekend": True,
        "|".join(f"{name}s|le {name}|les {name}s" for name in _WEEKDAYS): True,
    },
    "month": {
        "janvier|janv": 1, "février|févr": 2, "mars": 3, "avril|avr": 4, "mai": 5, "juin": 6,
        "juillet|juil": 7, "août": 8, "septembre|sept": 9, "octobre|oct": 10, "novembre|nov": 11,
        "décembre|déc": 12,
    },
    "unit": {
        "seconde|secondes": "second", "minute|minutes": "minute", "heure|heures": "hour",
        "jour|jours|journée|journées": "day", "semaine|semaines": "week",
        "jour ouvré|jours ouvrés|jour ouvrable|jours ouvrables|jour de semaine|jours de semaine"
        "|jour de travail|jours de travail": "workday",
        "week-end|week-ends|weekend|weekends|fin de semaine|fins de semaine": "weekend",
        "mois": "month", "trimestre|trimestres": "quarter", "an|ans|année|années": "year",
    },
    "short_unit": {"s|sec": "second", "min|mn": "minute", "h": "hour"},
    "relday": {
        "aujourd'hui": 0, "demain": 1, "après-demain|après demain": 2, "hier": -1, "avant-hier": -2,
    },
    "daypart": _dayparts(),
    "next": {"prochain|prochaine|prochains|prochaines": True},
    "next_after": {"prochain|prochaine|qui vient|suivant|suivante": True},
    "this": {"ce|cet|cette": True},
    "last": {"dernier|dernière": True},
    "nth_last": {"dernier|dernière": -1, "avant-dernier|avant-dernière": -2},
    "ord": {
        "premier|première": 1, "deuxième|second|seconde": 2, "troisième": 3, "quatrième": 4,
        "cinquième": 5, "sixième": 6, "septième": 7, "huitième": 8, "neuvième": 9, "dixième": 10,
    },
    "nth_ending": {"er|re|e|ème|ère|eme": True},
    "nth_day": {"jour": ANY_DAY, "jour ouvré|jour ouvrable|jour de travail": WORKDAY},
    "edge": {"fin|la fin|en fin": -1, "début|le début": 1},
    "holiday": {
        "jour de l'an|nouvel an": "new_year", "épiphanie": "epiphany",
        "saint-valentin|saint valentin|la saint-valentin": "valentine",
        "fête du travail": "labour_day", "fête nationale|14 juillet": "bastille_day",
        "assomption": "assumption", "halloween": "halloween", "toussaint": "all_saints",
        "réveillon de noël|veille de noël": "christmas_eve", "noël": "christmas",
        "saint-sylvestre|saint sylvestre|réveillon du nouvel an": "new_years_eve",
    },
    "every": {"chaque|tous les|toutes les|tout les": True},
    "other": {},
    "few": {"quelques|plusieurs": True},
    "daygroup": {
        "jour ouvré|jours ouvrés|jour ouvrable|jours ouvrables|jour de semaine|jours de semaine"
        "|les jours ouvrés|en semaine|jour de travail|jours de travail": (0, 1, 2, 3, 4),
        "week-end|week-ends|weekend|weekends|le week-end|les week-ends|le weekend": (5, 6),
    },
    "freq": {
        "quotidiennement|journellement": (1, "day"),
        "hebdomadairement": (1, "week"), "mensuellement": (1, "month"),
        "annuellement": (1, "year"), "trimestriellement": (1, "quarter"),
        "semestriellement": (6, "month"), "tous les quinze jours|tous les 15 jours": (2, "week"),
    },
    "one_of": {"sur deux|sur 2": 2, "sur trois|sur 3": 3, "sur quatre|sur 4": 4},
    "ntimes": {"une fois": 1, "deux fois": 2, "trois fois": 3, "quatre fois": 4},
    "times": {"fois": True},
    "per": {"par": True},
    "in": {"dans|d'ici|sous": True},
    "later": {"plus tard": True},
    "before": {"avant": True},
    "after": {"après": True},
    "start": {"à partir de|à partir du|à compter du|à compter de|dès|dès le|en commençant le"
              "|en commençant|à partir d": True},
    "for": {"pendant|durant|pour": True},
    "rest": {"reste": True},
    "except": {"sauf|sauf le|sauf les|hormis|hormis le|excepté|excepté le|à l'exception du"
               "|à l'exception de|mais pas|mais pas le|sans le|sans compter": True},
    "public_holidays": {"jours fériés|les jours fériés": True},
    "business_hours": {"aux heures de bureau|pendant les heures de bureau|heures ouvrables": True},
    "on_the_hour": {"à l'heure pile|à chaque heure pile|pile": 0},
    "my_time": {"mon heure|heure locale": True},
    "time_word": {"heure": True},
    "zone_prep": {"de|d|à": True},
    "trouble": {
        "aube|à l'aube|lever du soleil|au lever du soleil|lever du jour|au lever du jour"
        "|coucher du soleil|au coucher du soleil|crépuscule|au crépuscule|aurore": "sun",
        "pleine lune|à la pleine lune|nouvelle lune": "moon",
        "pâques|à pâques|lundi de pâques|dimanche de pâques|vendredi saint|pentecôte|ascension"
        "|mardi gras|carnaval|ramadan|nouvel an chinois": "feast",
        "un de ces quatre|un de ces quatre matins|un de ces matins|un de ces soirs|un jour prochain"
        "|dans quelque temps|sous peu|d'ici peu|à la première occasion|quand tu peux|quand tu veux"
        "|quand tu pourras|à tes heures perdues|quand tu auras le temps|un autre jour"
        "|dans un moment|dans un instant|tout à l'heure|incessamment|dans peu de temps"
        "|un de ces jours|à un moment donné|plus tard|bientôt|un jour ou l'autre"
        "|à l'occasion|prochainement|tôt ou tard": "vague_time",
        "de temps en temps|parfois|de temps à autre|occasionnellement|régulièrement|souvent"
        "|quelquefois|par moments": "vague_recurrence",
        "bimestriel|bimestriellement|bimensuel|bimensuellement": "bimonthly",
    },
    "event": {"quand|si|lorsque|dès que|aussitôt que|s'il": 1},
    "birthday": {"anniversaire": 1},
    "asap": {"dès que possible|tout de suite|immédiatement|maintenant|au plus vite"
    "|le plus vite possible": 1},
    "past_ref": {"dernier|dernière|derniers|dernières|passé|passée|passés|précédent|précédente": 1},
    "about": {"à propos de|au sujet de|concernant|sur": 1},
    "weak_prep": {"de|depuis|sur|pour|des|du|d": 1},
    "lead": {
        "s'il te plaît|s'il vous plaît|stp|svp|salut|bonjour|ok|alors|aussi|et|eh": "drop",
        "peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|est-ce que tu peux|je veux que tu|je veux"
        "|j'aimerais|je voudrais|il faut|n'oublie pas|tu peux": "drop",
        "rappelle-moi|rappelle moi|rappelez-moi|me rappeler|rappel|mets un rappel|crée un rappel"
        "|ajoute un rappel": "remind",
        "préviens-moi|dis-moi|envoie-moi|donne-moi|montre-moi|lis-moi|notifie-moi|avertis-moi"
        "|réveille-moi|demande-moi|informe-moi|propose-moi": "keep",
        "que|de|d": "to",
    },
    "glue": {"est|mais|seulement|aussi|puis|s'il te plaît|le|la|exactement|toujours|pile": 1},
    "tail": {"s'il te plaît|s'il vous plaît|merci|stp|svp|!|.|?": 1},
    "thanks": {
        "merci|merci beaucoup|merci bien|mille mercis|merci infiniment": 1,
    },
    "statement": {
        "c'était|c'est|tu es|je suis|ça m'a|j'adore|vous êtes|ça marche|comment vas"
        "|quelle belle|je t'aime|tu as été|ravi|content": 1,
    },
    "chat": {
        "bonjour|bonsoir|bonne nuit|salut|coucou|merci|merci beaucoup|ça va|comment ça va"
        "|comment vas-tu|comment allez-vous|au revoir|à bientôt|à demain|à plus tard|ok|oui|non"
        "|d'accord|qui es-tu|que peux-tu faire|aide|parfait|super|de rien|joyeux noël|quoi de neuf"
        "|joyeux anniversaire|bonne journée|bonne soirée|bon week-end|enchanté|bravo": 1,
    },
    **UPDATES,
}  # fmt: skip

FRENCH: Final = Pack(
    name="fr",
    words=_WORDS,
    elisions=frozenset({"l", "d", "qu", "jusqu", "s", "n", "c", "m", "t", "j", "lorsqu"}),
)
