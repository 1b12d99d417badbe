"""Spanish."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Pack, Words
from holdfast.assistant.language.packs.forms import numbered
from holdfast.assistant.language.packs.spanish_updates import UPDATES
from holdfast.assistant.slots import ANY_DAY, WORKDAY

_NUMBERS: Final = numbered(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro "
    "veinticinco veintiséis veintisiete veintiocho veintinueve treinta"
)
_SAME: Final = ("lunes", "martes", "miércoles", "jueves", "viernes")
_OTHER: Final = ("sábado", "domingo")
_PREPOSITIONS: Final = ("de la", "por la", "en la", "a la")
_DAYS: Final = {"mañana": "morning", "tarde": "afternoon", "noche": "night"}


def _parts(name: str) -> str:
    return "|".join(f"{each} {name}" for each in _PREPOSITIONS)


def _dayparts() -> dict[str, tuple[int, str]]:
    found = {f"esta {name}": (0, part) for name, part in _DAYS.items()}
    for number, day in enumerate(("hoy", "mañana", "pasado mañana")):
        for name, part in _DAYS.items():
            found[f"{day} por la {name}|{day} en la {name}|{day} a la {name}"] = (number, part)
    return found


_WORDS: Final[Words] = {
    "num": _NUMBERS
    | {"una|un": 1, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "setenta": 70, "ochenta": 80,
       "noventa": 90, "cien": 100},
    "number_and": {"y": True},
    "one": {"un|una": 1},
    "onehalf": {"tres cuartos de": 0.75},
    "that": {"que|cómo|cuánto|cuántos|cuántas": True},
    "roughly": {"exactamente|aproximadamente|unos|unas|más o menos|cerca de|alrededor de": True},
    "half": {"media|medio": True},
    "quarter": {"cuarto": 15},
    "quarter_unit": {"un cuarto|cuarto": True},
    "plus": {"y": True},
    "minus": {"menos": True},
    "oclock": {"h|hs|hrs|en punto": True},
    "at": {"a las|a la|a eso de las|sobre las|hacia las": True},
    "part": {
        f"{_parts('mañana')}|mañanas|temprano|madrugada|{_parts('madrugada')}": "morning",
        "mediodía|a mediodía|al mediodía|del mediodía": "noon",
        f"tarde|tardes|{_parts('tarde')}": "afternoon",
        f"noche|noches|{_parts('noche')}": "night",
        "medianoche|a medianoche|a la medianoche": "midnight",
        "al final del día|fin del día|al final de la jornada": "end_of_day",
    },
    "part_after": {"|".join(_parts(each) for each in ("mañana", "tarde", "noche",
    "madrugada")): True},
    "date_det": {"el": True},
    "det": {"el|la|los|las": True},
    "on": {"el|en|en el": True},
    "of": {"de|del|de los|de las|de la": True},
    "in_period": {"en|en el": True},
    "monthly_of": {"del mes": True},
    "owner": {"mi|mis|nuestro|nuestra|su|sus|tu|tus": True},
    "period": {"el próximo mes": ("month", 1), "la próxima semana": ("week", 1),
        "el próximo año": ("year", 1), "el próximo trimestre": ("quarter", 1), "del mes|de mes": ("month", 0), "de año|del año": ("year", 0)},
    "and": {"y|e|y las|y a las": True},
    "or": {"o|u": True},
    "comma": {",|;": True},
    "from": {"de|desde|desde las|de las|del": True},
    "between": {"entre|entre las|entre la": True},
    "range": {"a|al|hasta|hasta las|-": True},
    "until": {"hasta|hasta el|hasta la": True},
    "weekday": {
        **{f"{name}|los {name}": number for number, name in enumerate(_SAME)},
        **{f"{name}|{name}s|los {name}s": number for number, name in enumerate(_OTHER, 5)},
    },
    "plural": {
        "entre semana|los días laborables|los días hábiles|fines de semana|los fines de semana"
        "|días laborables|días hábiles": True,
        "|".join(f"los {name}" for name in _SAME): True,
        "|".join(f"{name}s|los {name}s" for name in _OTHER): True,
    },
    "month": {
        "enero|ene": 1, "febrero|feb": 2, "marzo": 3, "abril|abr": 4, "mayo": 5, "junio|jun": 6,
        "julio|jul": 7, "agosto|ago": 8, "septiembre|setiembre|sept|sep": 9, "octubre|oct": 10,
        "noviembre|nov": 11, "diciembre|dic": 12,
    },
    "unit": {
        "segundo|segundos": "second", "minuto|minutos": "minute", "hora|horas": "hour",
        "día|días": "day", "semana|semanas": "week",
        "día laborable|días laborables|día hábil|días hábiles|día de trabajo": "workday",
        "fin de semana|fines de semana": "weekend", "mes|meses": "month",
        "trimestre|trimestres": "quarter", "año|años": "year", "quincena|quincenas": "fortnight",
    },
    "short_unit": {"seg|s": "second", "min": "minute", "h": "hour"},
    "relday": {"de hoy en ocho|hoy en ocho|de hoy en ocho días": 7, "de hoy en quince|hoy en quince": 14,
        "de mañana en ocho": 8, "hoy": 0, "mañana": 1, "pasado mañana": 2, "ayer": -1, "anteayer|antier": -2},
    "daypart": _dayparts(),
    "next": {"próximo|próxima|siguiente": True},
    "next_after": {"que viene|próximo|próxima|siguiente|que entra": True},
    "this": {"este|esta": True},
    "last": {"último|última": True},
    "nth_last": {"último|última": -1, "penúltimo|penúltima": -2, "antepenúltimo": -3},
    "ord": {
        "primer|primero|primera": 1, "segundo|segunda": 2, "tercer|tercero|tercera": 3,
        "cuarto|cuarta": 4, "quinto|quinta": 5, "sexto|sexta": 6, "séptimo|séptima": 7,
        "octavo|octava": 8, "noveno|novena": 9, "décimo|décima": 10,
    },
    "nth_ending": {"º|ro|er": True},
    "nth_day": {"día": ANY_DAY, "día laborable|día hábil|día de trabajo": WORKDAY},
    "date_mark": {"día": True},
    "edge": {"fin|final|finales|fines|a fin|a fines|a final|a finales": -1, "principio|principios|comienzo|inicio": 1},
    "holiday": {
        "año nuevo": "new_year", "día de reyes|reyes": "epiphany", "san valentín": "valentine",
        "día de la mujer": "womens_day", "día del trabajo|día del trabajador": "labour_day",
        "día de la hispanidad": "hispanic_day", "halloween": "halloween",
        "todos los santos|día de todos los santos": "all_saints", "nochebuena": "christmas_eve",
        "navidad": "christmas", "nochevieja|fin de año": "new_years_eve",
    },
    "every": {"cada|todos los|todas las|todo el|toda la": True},
    "other": {},
    "few": {"pocos|pocas|unos|unas|varios|varias|algunos|algunas|unos pocos": True},
    "daygroup": {
        "entre semana|días laborables|días hábiles|día laborable|día hábil|los días laborables"
        "|los días hábiles|días de semana|días de trabajo": (0, 1, 2, 3, 4),
        "fin de semana|fines de semana|los fines de semana": (5, 6),
    },
    "freq": {
        "a diario|diariamente": (1, "day"), "cada mañana|todas las mañanas": (1,
        "day", "morning"),
        "semanalmente": (1, "week"), "mensualmente": (1, "month"),
        "anualmente": (1, "year"), "trimestralmente": (1, "quarter"),
        "semestralmente": (6, "month"), "quincenalmente": (2, "week"),
        "en días alternos|días alternos": (2, "day"),
        "semanas alternas|en semanas alternas": (2, "week"),
    },
    "one_of": {"sí y otro no|sí y otra no|sí otro no|sí otra no|de cada dos": 2, "de cada tres": 3},
    "ntimes": {"una vez": 1, "dos veces": 2, "tres veces": 3, "cuatro veces": 4},
    "times": {"veces|vez": True},
    "per": {"por|al|a la|cada": True},
    "in": {"en|dentro de|de aquí a": True},
    "later": {"después|más tarde|a partir de ahora": True},
    "before": {"antes de|antes del|antes de la|antes de las": True},
    "after": {"después de|después del|después de la|después de las": True},
    "start": {"a partir de|a partir del|empezando|empezando el|comenzando|comenzando el|desde el"
              "|empezando en|a partir de las": True},
    "onwards": {"en adelante": True},
    "for": {"durante|por": True},
    "rest": {"resto|lo que queda": True},
    "except": {"excepto|excepto los|excepto el|salvo|salvo el|salvo los|menos|menos el|menos los"
               "|pero no|con excepción de|a excepción de|sin contar|quitando": True},
    "public_holidays": {"festivos|feriados|días festivos": True},
    "business_hours": {"en horario laboral|en horario de oficina|en horas de oficina": True},
    "on_the_hour": {"en punto": 0, "a la hora en punto": 0},
    "my_time": {"mi hora|hora local|hora mía": True},
    "time_word": {"hora": True},
    "zone_prep": {"de|en": True},
    "trouble": {
        "amanecer|al amanecer|el amanecer|alba|al alba|atardecer|al atardecer|anochecer"
        "|al anochecer|salida del sol|puesta de sol|puesta del sol|ocaso": "sun",
        "luna llena|luna nueva": "moon",
        "semana santa|pascua|pascuas|domingo de pascua|viernes santo|jueves santo|carnaval"
        "|ramadán|domingo de ramos|corpus christi|pentecostés|año nuevo chino": "feast",
        "en algún momento|algún día|un día de estos|más adelante|pronto|luego|próximamente"
        "|tarde o temprano|cuando puedas": "vague_time",
        "de vez en cuando|a veces|de cuando en cuando|ocasionalmente|regularmente|a menudo"
        "|periódicamente|con frecuencia|cada tanto|cada cierto tiempo": "vague_recurrence",
        "bimestral|bimestralmente|bimensual|bimensualmente": "bimonthly",
    },
    "event": {"cuando|si|en cuanto|tan pronto como llegue": 1},
    "birthday": {"cumpleaños|aniversario": 1},
    "asap": {"lo antes posible|cuanto antes|ahora mismo|ahora|ya|inmediatamente|enseguida"
    "|ya mismo": 1},
    "past_ref": {"último|última|últimos|últimas|pasado|pasada|pasados|pasadas|anterior": 1},
    "about": {"sobre|acerca de|respecto a": 1},
    "weak_prep": {"de|desde|sobre|para|por|hasta|del": 1},
    "lead": {
        "por favor|siempre|hola|oye|ok|vale|bueno|entonces|también|y": "drop",
        "puedes|podrías|quiero que|quiero|necesito que|necesito|me gustaría|quisiera"
        "|no olvides": "drop",
        "recuérdame|recuérdanos|recordarme|recordatorio|ponme un recordatorio|pon un recordatorio"
        "|crea un recordatorio|que me recuerdes": "remind",
        "avísame|dime|envíame|mándame|muéstrame|léeme|notifícame|despiértame|llámame|dame"
        "|pregúntame|infórmame|enséñame": "keep",
        "que|de|para": "to",
    },
    "glue": {"pero|solo|sólo|también|luego|por favor|el|la|exactamente|siempre": 1},
    "tail": {"por favor|gracias|!|.|?|¡|¿": 1},
    "thanks": {
        "gracias|muchas gracias|mil gracias|muchísimas gracias": 1,
    },
    "statement": {
        "eso fue|fue|ha sido|eres|eso es|estuvo|me ayudó|me has|estoy|me encanta"
        "|qué bien|qué bueno|me gusta|está bien|cómo estás|cómo te": 1,
    },
    "chat": {
        "buenos días|buenas tardes|buenas noches|hola|buenas|buen día|gracias|muchas gracias"
        "|qué tal|¿qué tal|cómo estás|¿cómo estás|cómo te va|qué hay|adiós|hasta luego|hasta mañana"
        "|hasta pronto|ok|vale|sí|no|quién eres|¿quién eres|qué puedes hacer|ayuda|perfecto|genial"
        "|de nada|feliz navidad|feliz cumpleaños|qué pasa|nos vemos|encantado": 1,
    },
    **UPDATES,
}  # fmt: skip

SPANISH: Final = Pack(
    name="es",
    words=_WORDS,
    slashed_day_first=True,
)
