"""German."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Pack, Words
from holdfast.assistant.language.packs.german_forms import (
    PARTS,
    WEEKDAYS,
    compounds,
    declined,
    numbers,
    ordinals,
    with_plain_letters,
)
from holdfast.assistant.language.packs.german_updates import UPDATES
from holdfast.assistant.slots import ANY_DAY, WEEKEND_DAY, WORKDAY

_WORDS: Final[Words] = {
    "num": numbers(),
    "one": {"ein|eine|einen|einem|einer|eines": 1},
    "onehalf": {"anderthalb|eineinhalb": 1.5, "zweieinhalb": 2.5, "dreieinhalb": 3.5,
                "dreiviertel|drei viertel": 0.75},
    "couple": {},
    "owner": {"mein|meine|meinem|meinen|meiner|meines|unser|unsere|unserem|unseren|unserer|unseres"
    "|sein|seinem|seiner|ihr|ihrem|ihrer|dein|deinem|deiner": True},
    "that": {"dass|wie|ob|was|warum|welche|wann": True},
    "roughly": {"genau|etwa|ungefähr|circa|ca|exakt|rund|knapp|gut|spätestens": True},
    "half": {f"halb|{declined('halb')}": True},
    "quarter": {"viertel": 15},
    "quarter_unit": {"viertel": True},
    "hour_mod": {"dreiviertel|drei viertel": -15},
    "past": {"nach": True},
    "clock_to": {"vor": True},
    "oclock": {"uhr": True},
    "at": {"um|gegen|jeweils um|immer um|punkt": True},
    "part": {
        "morgens|vormittag|vormittags|früh|frühmorgens|am morgen|am frühen morgen|in der früh"
        "|in der frühe": "morning",
        "mittag|mittags|zu mittag": "noon",
        "nachmittag|nachmittags": "afternoon",
        "abend|abends": "evening",
        "nacht|nachts|in der nacht": "night",
        "mitternacht|um mitternacht": "midnight",
        "zum feierabend|nach feierabend|ende des tages|tagesende|geschäftsschluss": "end_of_day",
    },
    "part_after": {"morgens|vormittags|mittags|nachmittags|abends|nachts|früh": True},
    "part_prep": {"am|zu": True},
    "det": {"der|die|das|den|dem|des": True},
    "on": {"am|an|im|zum": True},
    "of": {"von|vom|im|in": True},
    "in_period": {"im|in": True},
    "monthly_of": {"des monats|im monat": True},
    "period": {"des monats|im monat": ("month", 0)},
    "and": {"und|sowie|als auch|&": True},
    "or": {"oder": True},
    "comma": {",|;": True},
    "from": {"von|vom": True},
    "between": {"zwischen": True},
    "range": {"bis|-": True},
    "until": {"bis|bis zum|bis zur|bis einschließlich|bis inklusive": True},
    "weekday": {
        **{f"{name}|{name}s": number for number, name in enumerate(WEEKDAYS)},
        "sonnabend|sonnabends": 5,
        "mo": 0, "di": 1, "mi": 2, "do": 3, "fr": 4, "sa": 5,
    },
    "plural": {
        **{f"{name}s": True for name in (*WEEKDAYS, "sonnabend")},
        "werktags|wochentags|werktagen|wochentagen|arbeitstagen|wochenenden|werktäglich"
        "|wochenends|unter der woche": True,
    },
    "month": {
        "januar|jänner|jan": 1, "februar|feber|feb": 2, "märz|maerz": 3, "april|apr": 4, "mai": 5,
        "juni|jun": 6, "juli|jul": 7, "august|aug": 8, "september|sep|sept": 9, "oktober|okt": 10,
        "november|nov": 11, "dezember|dez": 12,
    },
    "unit": {
        "sekunde|sekunden": "second", "minute|minuten": "minute", "stunde|stunden": "hour",
        "tag|tage|tagen|tages|tags": "day", "woche|wochen": "week",
        "werktag|werktage|werktagen|werktags|arbeitstag|arbeitstage|arbeitstagen|wochentag"
        "|wochentage|wochentagen|wochentags": "workday",
        "wochenende|wochenenden|wochenendes": "weekend",
        "monat|monate|monaten|monats|monates": "month", "quartal|quartale|quartals": "quarter",
        "jahr|jahre|jahren|jahres": "year",
    },
    "short_unit": {"sek": "second", "min": "minute", "std|h": "hour"},
    "relday": {"heute": 0, "morgen": 1, "übermorgen": 2, "gestern": -1, "vorgestern": -2},
    "daypart": {
        f"{day} {part}": (number, value)
        for number, day in enumerate(("heute", "morgen", "übermorgen"))
        for part, value in PARTS.items()
    } | {"heute in der nacht": (0, "night")},
    "next": {declined("nächst", "kommend"): True},
    "this": {declined("dies"): True},
    "last": {declined("letzt"): True},
    "nth_last": {declined("letzt"): -1, declined("vorletzt"): -2, declined("drittletzt"): -3},
    "ord": ordinals(),
    "nth_day": {
        "tag|tages": ANY_DAY,
        "werktag|arbeitstag|wochentag": WORKDAY,
        "wochenendtag": WEEKEND_DAY,
    },
    "edge": {"ende": -1, "anfang|beginn": 1},
    "holiday": {
        "neujahr|neujahrstag": "new_year", "valentinstag": "valentine",
        "tag der arbeit|maifeiertag": "labour_day", "nikolaus|nikolaustag": "st_nicholas",
        "tag der deutschen einheit": "german_unity", "halloween": "halloween",
        "allerheiligen": "all_saints", "heiligabend|heiliger abend": "christmas_eve",
        "weihnachten|weihnachtstag": "christmas", "silvester": "new_years_eve",
        "muttertag": "mothers_day", "frauentag|weltfrauentag": "womens_day",
    },
    "every": {"jede|jeden|jeder|jedes|jedem|alle|allen|aller": True},
    "other": {declined("ander"): 2},
    "few": {"paar|einige|einigen|mehrere|mehreren|wenige|wenigen": True},
    "daygroup": {
        "werktag|werktage|werktagen|werktags|arbeitstag|arbeitstage|arbeitstagen|wochentag"
        "|wochentage|wochentagen|wochentags|werktäglich|unter der woche": (0, 1, 2, 3, 4),
        "wochenende|wochenenden|wochenends": (5, 6),
    },
    "at_group": {"an|am": True},
    "freq": {
        "täglich|tagtäglich": (1, "day"), "stündlich": (1, "hour"), "minütlich": (1, "minute"),
        "wöchentlich": (1, "week"), "monatlich": (1, "month"), "jährlich|alljährlich": (1, "year"),
        "vierteljährlich|quartalsweise": (1, "quarter"), "halbjährlich": (6, "month"),
        "zweiwöchentlich|vierzehntägig|vierzehntäglich|14-tägig|zweiwöchig": (2, "week"),
        "zweitäglich": (2, "day"), "halbstündlich": (30, "minute"),
        "viertelstündlich": (15, "minute"), "zweistündlich": (2, "hour"),
        "einmal im monat": (1, "month"),
        "jeden morgen|allmorgendlich": (1, "day", "morning"), "allabendlich": (1, "day", "evening"),
    },
    "ntimes": {"einmal": 1, "zweimal": 2, "dreimal": 3, "viermal": 4, "fünfmal": 5, "zehnmal": 10},
    "times": {"mal|male": True},
    "per": {"pro|je|am|im|in": True},
    "in": {"in|nach|binnen": True},
    "later": {"später|ab jetzt|von jetzt an": True},
    "before": {"vor": True},
    "after": {"nach": True},
    "start": {"ab|beginnend|beginnend ab|angefangen|startend|mit beginn": True},
    "onwards": {"an": True},
    "for": {"für": True},
    "until_after": {"lang|hindurch": True},
    "rest": {"rest": True},
    "except": {
        "außer|ausser|ausgenommen|mit ausnahme von|mit ausnahme des|aber nicht|jedoch nicht"
        "|nur nicht|nicht am|nicht an|ohne|bis auf": True,
    },
    "public_holidays": {"feiertage|feiertagen|an feiertagen": True},
    "business_hours": {"während der geschäftszeiten|zu geschäftszeiten"
    "|während der bürozeiten": True},
    "on_the_hour": {"zur vollen stunde|immer zur vollen stunde": 0, "zur halben stunde": 30},
    "my_time": {"meine zeit|meiner zeit|ortszeit": True},
    "time_word": {"zeit": True},
    "zone_prep": {"nach": True},
    "trouble": {
        "sonnenaufgang|bei sonnenaufgang|sonnenuntergang|bei sonnenuntergang|morgendämmerung"
        "|abenddämmerung|dämmerung|morgengrauen": "sun",
        "vollmond|bei vollmond|neumond|bei neumond": "moon",
        "ostern|ostersonntag|ostermontag|karfreitag|gründonnerstag|pfingsten|pfingstsonntag"
        "|pfingstmontag|christi himmelfahrt|himmelfahrt|fronleichnam|aschermittwoch|rosenmontag"
        "|fastnacht|fasching|karneval|ramadan|chinesisches neujahr|erster advent": "feast",
        "wenn du zeit hast|wenn es passt|bei nächster gelegenheit|in nächster zeit|in naher zukunft"
        "|in ein paar minuten|in ein paar stunden|in ein paar tagen|gelegentlich mal|die tage"
        "|an einem dieser tage|dieser tage|irgendwann diese woche|später|nachher|ein andermal"
        "|irgendwann|irgendwann mal|demnächst|bald|später mal|bei gelegenheit|in kürze"
        "|irgendwann später|zu gegebener zeit|eines tages": "vague_time",
        "mehrmals am tag|mehrmals täglich|mehrmals pro tag|mehrmals pro woche|mehrmals die woche"
        "|mehrmals wöchentlich|mehrmals im monat|mehrmals im jahr|mehrmals in der woche"
        "|hin und wieder|ab und zu|ab und an|gelegentlich|manchmal|von zeit zu zeit|regelmäßig"
        "|öfter|öfters|dann und wann|immer mal wieder|hin und wieder mal": "vague_recurrence",
        "zweimonatlich": "bimonthly",
    },
    "event": {"wenn|falls|sobald|sofern": 1},
    "birthday": {"geburtstag|meinem geburtstag|jahrestag": 1},
    "asap": {"sofort|so bald wie möglich|so schnell wie möglich|jetzt|gleich|umgehend"
    "|schnellstmöglich": 1},
    "past_ref": {"vergangenen|vergangene|vergangener|vorigen|vorige|letzten|letzte|letzter": 1},
    "about": {"über|bezüglich|wegen|betreffend|an|ans|zum thema": 1},
    "weak_prep": {"von|seit|über|für|wegen|bis|aus|der": 1},
    "lead": {
        "bitte|immer|hey|hi|hallo|ok|okay|also|dann|mal|doch|und": "drop",
        "kannst du|könntest du|würdest du|kannst du bitte|ich möchte|ich will|ich muss|du sollst"
        "|ich möchte dass du|vergiss nicht": "drop",
        "erinnere mich|erinnere uns|erinner mich|erinnerung|mich erinnern": "remind",
        "sag mir|sage mir|schick mir|schicke mir|sende mir|gib mir|zeig mir|zeige mir|lies mir"
        "|benachrichtige mich|informiere mich|weck mich|wecke mich|frag mich": "keep",
        "dass|daran|an|ans": "to",
    },
    "glue": {"aber|nur|auch|dann|bitte|jeweils|immer|genau|und zwar|der|die|das|also": 1},
    "tail": {"bitte|danke|!|.|?|bescheid|erinnern": 1},
    "thanks": {
        "danke|vielen dank|danke schön|dankeschön|besten dank|danke dir|herzlichen dank"
        "|tausend dank|danke sehr": 1,
    },
    "statement": {
        "das war|das ist|du bist|es war|ich bin|ich liebe|ich finde|das hat|das hilft"
        "|mir geht|wie geht|schön dass|ich freue mich|was für|das klingt|es ist": 1,
    },
    "chat": {
        "guten morgen|guten tag|guten abend|gute nacht|hallo|hi|hey|moin|moin moin|servus|grüß gott"
        "|danke|danke schön|dankeschön|vielen dank|wie geht's|wie geht es dir|wie geht's dir"
        "|wie gehts|wie geht es ihnen|tschüss|auf wiedersehen|bis morgen|bis später|ok|okay|ja|nein"
        "|wer bist du|was kannst du|hilfe|alles klar|schönen tag|schönen tag noch|was geht"
        "|wie war dein tag|frohe weihnachten|alles gute zum geburtstag|gut gemacht|super|prima": 1,
    },
    **UPDATES,
}  # fmt: skip

GERMAN: Final = Pack(
    name="de",
    words=with_plain_letters(_WORDS),
    dotted_ordinals=True,
    half_before=True,
    compounds=compounds(),
)
