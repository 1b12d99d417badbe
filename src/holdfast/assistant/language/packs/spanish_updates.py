"""Spanish words about tasks that exist already."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Words

UPDATES: Final[Words] = {
    "op": {
        "pausa|pausar|pon en pausa|suspende|suspender|detén temporalmente|"
        "para temporalmente|desactiva|desactivar|páusalo|páusala|suspéndelo|"
        "poner en pausa|para|suspéndela|ponlo en pausa|ponla en pausa|"
        "detenlo por ahora|desactívalo|desactívala": "pause",
        "reanuda|reanudar|reanúdalo|reanúdala|retoma|retómalo|reactiva|reactívalo|"
        "vuelve a activar|continúa|continúa con|activa|actívalo|actívala|"
        "vuelve a activarlo|vuelve a activarla|sigue con|sigue|retómala|reactívala|"
        "pon en marcha": "resume",
        "cancela|cancelar|cancélalo|cancélala|elimina|eliminar|elimínalo|borra|borrar|"
        "bórralo|quita|quítalo|detén|deténlo|suprime|deja de|olvida|ya no necesito|"
        "ya no lo necesito|ya no la necesito|no lo necesito|olvídalo|olvídala|bórrala|"
        "elimínala|quítala|ya no quiero|no necesito|ya no hace falta|deja de enviarme|"
        "detenlo|detenla": "cancel",
        "ejecuta|ejecutar|ejecútalo|lanza|lánzalo|corre|inicia|haz|ejecútala|córrelo|"
        "córrela|arranca|lánzala": "run_now",
        "salta|sáltate|omite|omítelo|omitir|sáltatelo|sáltatela|omítela|no envíes|"
        "no mandes": "skip",
        "renombra|cambia el nombre de|llama|llámalo|renómbralo|llámala|renómbrala|"
        "llamar|ponle el nombre": "rename",
        "cambia|cambiar|cámbialo|cámbiala|mueve|mover|muévelo|muévela|pasa|pásalo|"
        "reprograma|reprográmalo|aplaza|aplázalo|pospón|posponlo|ajusta|actualiza|"
        "modifica|retrasa|adelanta|ponlo|ponla|hazlo|pon|retrásalo|retrásala|"
        "adelántalo|adelántala|pásala|hazla|aplázala|ponerlo|retrasar": "reschedule",
        "envía|manda|entrega|envíalo|mándalo|envía solo|manda solo|mándame|envíame|"
        "envíala|mándala|enviar|mandar|avísame": "deliver",
    },
    "op_now": {
        "ahora|ahora mismo|ya|ya mismo|inmediatamente|enseguida|de inmediato": 1,
    },
    "all": {
        "todo|todas|todos|todas las tareas|todas mis tareas|todos los recordatorios|"
        "todos mis recordatorios": 1,
    },
    "pronoun": {
        "eso|esto|la tarea|esta tarea|esa tarea|el recordatorio|este recordatorio|"
        "ese recordatorio|lo|la|páusalo|páusala|suspéndelo|reanúdalo|reanúdala|"
        "retómalo|reactívalo|actívalo|cancélalo|cancélala|elimínalo|bórralo|quítalo|"
        "deténlo|ejecútalo|lánzalo|omítelo|sáltatelo|llámalo|renómbralo|cámbialo|"
        "cámbiala|muévelo|muévela|pásalo|reprográmalo|aplázalo|posponlo|ponlo|ponla|"
        "hazlo|envíalo|mándalo|suspéndela|ponlo en pausa|ponla en pausa|ese|esa|este|"
        "esta|retrásalo|retrásala|adelántalo|adelántala|actívala|olvídalo|olvídala|"
        "bórrala|elimínala|quítala|detenlo|detenla|córrelo|córrela|ejecútala|llámala|"
        "renómbrala|ya no lo necesito|ya no la necesito|no lo necesito|"
        "vuelve a activarlo|vuelve a activarla|retómala|reactívala|detenlo por ahora|"
        "desactívalo|desactívala|sáltatela|omítela|pásala|hazla|aplázala|ponerlo|"
        "envíala|mándala|lánzala": 1,
    },
    "generic": {
        "tarea|tareas|recordatorio|recordatorios|el|la|los|las|mi|mis|de|del|a|al|para|"
        "por|con|en|un|una|favor|ahora|que|lo|alarma|aviso|próximo|próxima": 1,
    },
    "next_run": {
        "la próxima vez|la próxima ejecución|próxima ejecución|la siguiente vez|"
        "la próxima|el próximo|la siguiente|el siguiente": 1,
    },
    "instead": {
        "en su lugar|en vez de eso|mejor|a partir de ahora|de ahora en adelante|"
        "desde ahora|en adelante": 1,
    },
    "rename_to": {
        "a|como|por": 1,
    },
    "later_by": {
        "más tarde|después": 1,
        "antes|más temprano": -1,
    },
    "channel": {
        "correo|correo electrónico|email|e-mail|por correo|mail": "EMAIL",
        "web|la web|navegador|por web": "WEB",
        "móvil|celular|teléfono|el móvil|push|al móvil": "MOBILE",
    },
    "only": {
        "solo|sólo|solamente|únicamente": 1,
    },
    "add_channel": {
        "también|además": 1,
    },
    "remove_channel": {
        "no|ya no|sin|deja de": 1,
    },
    "op_shift": {
        "aplaza|aplázalo|pospón|posponlo|retrasa|retrásalo|atrasa|retrásala|aplázala": 1,
        "adelanta|adelántalo|adelántala": -1,
    },
    "op_mid": {
        "debería ser|debe ser|tiene que ser|que sea|digamos|debería|tiene que|debe|"
        "sería mejor|es mejor|me viene mejor|prefiero|quise decir|mejor que sea": "reschedule",
    },
    "task_noun": {
        "tarea|tareas|recordatorio|recordatorios|alarma|alarmas": 1,
    },
    "filler": {
        "mejor|por ahora|de momento|temporalmente|definitivamente|del todo|ya|más|sea|"
        "ser|en vez de|hasta|por|lo|me|no|sí|perdón|espera|en realidad|bueno|digo|"
        "al final": 1,
    },
    "not": {
        "en vez de|en lugar de|en vez de a|en lugar de a|y no": 1,
    },
    "forward": {
        "adelanta|adelántalo": 1,
    },
    "rename_noun": {
        "nombre|título|el nombre|el título|el nombre de|el título de": 1,
    },
    "op_split": {
        "pon|poner|ponlo|ponla|deja": {"en pausa": "pause", "en marcha": "resume"},
    },
    "hold_words": {
        "en pausa|pausado|pausada": 1,
    },
    "back_on": {
        "en marcha|otra vez en marcha": 1,
    },
    "again": {
        "otra vez|de nuevo": 1,
    },
    "for_now": {
        "por ahora|por el momento|de momento|temporalmente|hasta nuevo aviso|"
        "por un tiempo": 1,
    },
    "for_good": {
        "definitivamente|para siempre|del todo": 1,
    },
    "negative": {
        "no|sin|ya no|no hay|no quiero|nada de|ningún|ninguna": 1,
    },
    "enough": {
        "basta|es suficiente|está bien|bastaría|con eso basta|es bastante|alcanza": 1,
    },
    "too_much": {
        "es demasiado temprano|es muy temprano|es demasiado tarde|es muy tarde|"
        "demasiado temprano|muy temprano": 1,
    },
    "same": {
        "a la misma hora|misma hora|la misma hora": 1,
    },
    "called": {
        "debería llamarse|se llama|llamarse|debe llamarse|que se llame": 1,
    },
    "aside": {
        "estoy|estaré|porque|ya que|como estoy|ya estoy|ya está|es que|tengo|estamos|"
        "está|me voy|ya he": 1,
    },
    "reason": {
        "porque|ya que": 1,
    },
    "says_is": {
        "es|está|era": 1,
    },
    "via": {
        "por|vía|en": 1,
    },
    "points_at": {
        "esta tarea|esa tarea|este recordatorio|ese recordatorio": 1,
    },
    "small": {
        "yo|tú|puedes|podrías|puede|quiero|quisiera|me gustaría|necesito|lo de|la de|"
        "el de|las|los|sea|que|y|con|en|un|una|no|sí|ok|vale|gracias|también|solo|"
        "hazlo|haz|favor|ir|hay|es|de|eso|más|pon|tener|recibir|hora|la hora|mi": 1,
    },
}  # fmt: skip
