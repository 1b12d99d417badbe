"""German words about tasks that exist already."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Words

UPDATES: Final[Words] = {
    "op": {
        "pausiere|pausieren|pausier|anhalten|unterbrich|unterbrechen|aussetzen|"
        "lege auf eis|stelle vorübergehend ein|deaktiviere|deaktivieren|ausschalten|"
        "leg auf eis|mach pause mit": "pause",
        "setze fort|fortsetzen|setz fort|nimm wieder auf|wieder aufnehmen|reaktiviere|"
        "reaktivieren|aktiviere|aktivieren|weiterführen|führe fort|fahre fort mit|"
        "starte wieder|mach weiter mit|mach weiter|mach damit weiter|weitermachen|"
        "führe weiter|weiter mit": "resume",
        "lösche|löschen|lösch|entferne|entfernen|storniere|stornieren|beende|beenden|"
        "stoppe|stoppen|stopp|streiche|streichen|brich ab|abbrechen|sage ab|absagen|"
        "vergiss|stelle ein|hör auf mit|ich brauche nicht mehr|streich|"
        "brauche ich nicht mehr|nicht mehr nötig|kann weg|schaff ab|"
        "nicht mehr gebraucht|kein mehr|hat sich erledigt|will ich nicht mehr|"
        "abschaffen|kann gelöscht werden|wird nicht mehr gebraucht": "cancel",
        "überspringe|überspringen|lass aus|lass ausfallen|auslassen|ausfallen lassen|"
        "überspring|fällt aus|fallen lassen": "skip",
        "benenne|umbenennen|nenne|benenne um|nenn|benenn": "rename",
        "verschiebe|verschieben|verschieb|ändere|ändern|änder|verlege|verlegen|stelle|"
        "stell|lege|leg|setze|mach|mache|passe an|plane|aktualisiere|umstellen|legen|"
        "setzen|machen|stellen": "reschedule",
        "führe aus|führe|ausführen|starte|starten|lass laufen|lass|führ": "run_now",
        "schicke|sende|schick|liefere|zustellen|schicke nur|sende nur|schicken|senden|"
        "benachrichtige mich": "deliver",
    },
    "op_split": {
        "setze|setz": {"fort": "resume", "aus": "pause"},
        "brich|breche|sage|sag|schaff|schaffe": {"ab": "cancel"},
        "nimm": {"wieder auf": "resume", "auf": "resume"},
        "schalte|schalt": {"aus": "pause", "ab": "pause", "ein": "resume", "an": "resume"},
        "ziehe|zieh": {"vor": "reschedule"},
        "mach|mache": {"weiter": "resume", "pause": "pause"},
        "führe|führ": {"fort": "resume", "aus": "run_now", "weiter": "resume"},
        "leg|lege": {"auf eis": "pause"},
        "lass|lasse": {"aus": "skip", "ausfallen": "skip", "laufen": "run_now", "wieder laufen": "resume"},
        "starte|start": {"wieder": "resume"},
        "stell|stelle": {"ein": "cancel", "um": "reschedule"},
        "brauche|brauch|will|möchte": {"nicht mehr": "cancel"},
        "kein|keine|keinen": {"mehr": "cancel"},
        "benenne|benenn": {"um": "rename"},
        "halt|halte": {"an": "pause"},
    },
    "op_shift": {
        "verschiebe|verschieben|verschieb|verlege|verlegen": 1,
        "ziehe|zieh": -1,
    },
    "op_now": {
        "jetzt|sofort|gleich|jetzt gleich|jetzt sofort|umgehend|noch einmal|"
        "jetzt bitte|auf der stelle|gleich jetzt": 1,
    },
    "all": {
        "alle|alles|alle aufgaben|alle meine aufgaben|alle erinnerungen|"
        "sämtliche aufgaben|alle meine erinnerungen|alle termine": 1,
    },
    "pronoun": {
        "es|ihn|sie|das|die aufgabe|diese aufgabe|die erinnerung|diese erinnerung|"
        "den termin|den task|diesen termin|dies|damit|dieses|diese|diesen|daran": 1,
    },
    "generic": {
        "aufgabe|aufgaben|erinnerung|erinnerungen|termin|termine|task|der|die|das|den|"
        "dem|mein|meine|meinen|meiner|an|auf|für|von|zu|zum|mit|bitte|jetzt|um|im|am|"
        "in|und|nun|tägliche|täglichen|wöchentliche|wöchentlichen|nächste|nächsten": 1,
    },
    "next_run": {
        "den nächsten lauf|nächsten lauf|das nächste mal|nächstes mal|"
        "die nächste ausführung|nächste ausführung|den nächsten termin|den nächsten|"
        "die nächste|das nächste|nächster lauf": 1,
    },
    "instead": {
        "stattdessen|künftig|ab jetzt|von nun an|lieber|nur noch|von jetzt an|"
        "in zukunft|zukünftig": 1,
    },
    "rename_to": {
        "in|zu|als": 1,
    },
    "to_time": {
        "auf": 1,
    },
    "later_by": {
        "später": 1,
        "früher|eher|vor": -1,
    },
    "channel": {
        "e-mail|email|mail|e-mails|per e-mail|per mail|per email": "EMAIL",
        "web|im web|browser|webseite|posteingang im web": "WEB",
        "handy|mobil|mobiltelefon|aufs handy|auf mein handy|push|smartphone": "MOBILE",
    },
    "only": {
        "nur|ausschließlich|bloß": 1,
    },
    "add_channel": {
        "auch|zusätzlich|außerdem": 1,
    },
    "remove_channel": {
        "nicht|nicht mehr|kein|keine|ohne": 1,
    },
    "op_mid": {
        "soll um|sollte um|soll künftig um|soll ab jetzt um|soll|sollte|sagen wir|"
        "wäre besser|passt besser|passt mir besser|ist besser|besser um|besser|muss|"
        "müsste|sollen|ist jetzt|doch lieber|ich meinte|draus|daraus": "reschedule",
    },
    "task_noun": {
        "aufgabe|aufgaben|erinnerung|erinnerungen|termin|termine|task|tasks": 1,
    },
    "filler": {
        "fort|aus|ab|an|auf|ein|um|wieder|wieder auf|ausfallen|laufen|vor|doch|mal|"
        "bitte|vorerst|erstmal|erst mal|vorübergehend|endgültig|komplett|ganz|lieber|"
        "statt|mehr|wird|werden|kommen|starten|schicken|laufen lassen|zu|mir|für mich|"
        "per|über|nun|sein|nein|also|ach|hm|sorry|moment|eigentlich|schließlich": 1,
    },
    "not": {
        "statt|anstatt|statt um|nicht": 1,
    },
    "forward": {
        "vor|früher": 1,
    },
    "rename_noun": {
        "namen|titel|name": 1,
    },
    "again": {
        "wieder|erneut": 1,
    },
    "back_on": {
        "wieder laufen|wieder an|wieder ein": 1,
    },
    "hold_words": {
        "auf eis|pausiert|pause": 1,
    },
    "for_now": {
        "vorerst|erstmal|erst mal|vorübergehend|vorläufig|bis auf weiteres|fürs erste|"
        "einstweilen": 1,
    },
    "for_good": {
        "endgültig|für immer|komplett|ganz": 1,
    },
    "negative": {
        "nicht|kein|keine|keinen|ohne|nicht mehr": 1,
    },
    "enough": {
        "reicht|genügt|reicht aus|reicht mir|ist genug|ist ausreichend|reicht völlig": 1,
    },
    "too_much": {
        "ist zu früh|ist zu spät|zu früh|zu spät|passt nicht": 1,
    },
    "same": {
        "gleiche zeit|zur gleichen zeit|selbe zeit|zur selben zeit|gleiche uhrzeit": 1,
    },
    "called": {
        "heißen|soll heißen|heißt|heißt jetzt": 1,
    },
    "aside": {
        "ich bin|bin|ich habe|ich hab|weil|da ich|denn|wir sind|ich war|der|ich muss|"
        "es ist|das ist": 1,
    },
    "reason": {
        "weil|denn|da ich": 1,
    },
    "says_is": {
        "ist|war": 1,
    },
    "via": {
        "per|als|via|über": 1,
    },
    "points_at": {
        "diese aufgabe|die aufgabe|diese erinnerung|diesen termin": 1,
    },
    "small": {
        "schick mir|schicke mir|sende mir|gib mir|zeig mir|zeige mir|gleich|sag mir|lies mir|"
        "ich|du|wir|hätte|hätten|könntest|kannst|könnten|können|kann|würde|möchte|will|"
        "gern|gerne|brauche|brauch|noch|schon|ab|uhr|dem|mach|kommt|kommen|läuft|"
        "laufen|haben|hätt|mal|bitte|ja|nein|ok|okay|mir|mich|auch|als|soll|was|draus|"
        "eine|einen|mehr|dann|so|werden|bekommen|kriegen|auf dem|doch nicht|und": 1,
    },
}  # fmt: skip
