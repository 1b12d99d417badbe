"""French words about tasks that exist already."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Words

UPDATES: Final[Words] = {
    "op": {
        "mets en pause|mettre en pause|pause|suspends|suspendre|interromps|désactive|"
        "désactiver|arrête temporairement|mets-le en pause|mets-la en pause|"
        "arrête pour l'instant|désactive-la|désactive-le|suspends-la|suspends-le|"
        "mets ça en pause": "pause",
        "reprends|reprendre|reprends-le|reprends-la|réactive|réactive-le|"
        "remets en route|relance|relance-la|relance-le|continue|continue-la|"
        "continue-le|réactive-la|remets|remets-la|remets-le|la reprendre|le reprendre|"
        "poursuis": "resume",
        "supprime|supprimer|supprime-le|supprime-la|annule|annuler|annule-le|annule-la|"
        "arrête|arrête-le|efface|efface-le|enlève|enlève-le|retire|stoppe|oublie|"
        "termine|plus besoin|plus besoin de|je n'ai plus besoin|je n'ai plus besoin de|"
        "je n'en ai plus besoin|laisse tomber|arrête-la|efface-la|supprime-les|"
        "je ne veux plus|on peut supprimer|n'est plus nécessaire": "cancel",
        "lance|lance-le|lance-la|exécute|exécute-le|exécuter|démarre|fais tourner|fais|"
        "exécute-la|démarre-la|fais-la tourner": "run_now",
        "saute|sauter|saute-le|passe|ignore|ignore-le|saute-la|ignore-la|ne fais pas|"
        "n'envoie pas": "skip",
        "renomme|renommer|renomme-le|appelle|renomme-la|appelle-le|appelle-la|nomme": "rename",
        "change|changer|change-le|change-la|déplace|déplacer|déplace-le|déplace-la|"
        "décale|décale-le|reporte|reporte-le|repousse|repousse-le|mets|mets-le|mets-la|"
        "avance|modifie|modifie-le|ajuste|passe-le|replanifie|mettre|modifie-la|"
        "décale-la|repousse-la|reporte-la|avance-la|passe-la|retarde|retarde-le|"
        "retarde-la|fais-la|fais-le|mets ça|décaler|passer": "reschedule",
        "envoie|envoie-le|livre|envoie seulement|envoie-la|envoyer|envoie-moi|"
        "envoie-le-moi|livre-la|notifie-moi": "deliver",
    },
    "op_now": {
        "maintenant|tout de suite|immédiatement|dès maintenant|sur-le-champ": 1,
    },
    "all": {
        "tout|toutes|tous|toutes les tâches|toutes mes tâches|tous les rappels|"
        "tous mes rappels": 1,
    },
    "pronoun": {
        "le|la|ça|cela|la tâche|cette tâche|le rappel|ce rappel|celui-ci|celle-ci|"
        "reprends-le|reprends-la|relance-le|réactive-le|continue-le|active-le|"
        "supprime-le|supprime-la|annule-le|annule-la|arrête-le|efface-le|enlève-le|"
        "lance-le|lance-la|exécute-le|saute-le|ignore-le|renomme-le|change-le|"
        "change-la|déplace-le|déplace-la|décale-le|reporte-le|repousse-le|mets-le|"
        "mets-la|modifie-le|passe-le|envoie-le|mets-le en pause|mets-la en pause|celle|"
        "celui|celle-là|celui-là|la tienne|mets ça|en|décale-la|fais-la|fais-le|"
        "mets ça en pause|arrête-la|suspends-la|suspends-le|désactive-la|désactive-le|"
        "relance-la|continue-la|exécute-la|saute-la|renomme-la|appelle-le|appelle-la|"
        "envoie-la|repousse-la|avance-la|passe-la|modifie-la|réactive-la|remets-la|"
        "remets-le|efface-la|la reprendre|le reprendre|reporte-la|retarde-le|"
        "retarde-la|ignore-la|démarre-la": 1,
    },
    "generic": {
        "tâche|tâches|rappel|rappels|le|la|les|l|mon|ma|mes|de|du|des|d|à|au|pour|en|"
        "un|une|maintenant|s'il|te|plaît|prochain|prochaine|alarme": 1,
    },
    "next_run": {
        "la prochaine fois|la prochaine exécution|prochaine exécution|"
        "l'exécution suivante|la prochaine|le prochain|celle d'après": 1,
    },
    "instead": {
        "à la place|plutôt|désormais|à partir de maintenant|dorénavant|finalement|"
        "en fin de compte": 1,
    },
    "rename_to": {
        "en": 1,
    },
    "later_by": {
        "plus tard": 1,
        "plus tôt|avant": -1,
    },
    "channel": {
        "e-mail|email|mail|courriel|par mail|par e-mail": "EMAIL",
        "web|le web|navigateur|sur le web": "WEB",
        "mobile|téléphone|portable|sur mobile|push|mon téléphone|mon portable|"
        "mon mobile|notification|notifications|ma boîte mail|mes mails|mes e-mails": "MOBILE",
    },
    "only": {
        "seulement|uniquement|juste": 1,
    },
    "add_channel": {
        "aussi|également|en plus": 1,
    },
    "remove_channel": {
        "pas|plus|ne|sans": 1,
    },
    "op_shift": {
        "décale|décale-le|reporte|reporte-le|repousse|repousse-le|retarde|retarde-le|"
        "retarde-la|décale-la|repousse-la|reporte-la": 1,
        "avance|avance-le|avance-la": -1,
    },
    "op_mid": {
        "doit être|devrait être|passe à|devrait|doit|disons|serait mieux|c'est mieux|"
        "vaut mieux|est mieux|je préfère|je voulais dire|serait bien|me va mieux": "reschedule",
    },
    "task_noun": {
        "tâche|tâches|rappel|rappels|alarme|alarmes": 1,
    },
    "filler": {
        "plutôt|pour l'instant|pour le moment|temporairement|définitivement|encore|"
        "être|au lieu de|jusqu|me|moi|finalement|non|oui|euh|pardon|désolé|en fait|"
        "attends": 1,
    },
    "not": {
        "au lieu de|plutôt que|plutôt qu'|au lieu d'|et non|pas|plutôt qu'à|et pas": 1,
    },
    "forward": {
        "avance|avance-le": 1,
    },
    "rename_noun": {
        "nom|titre|le nom|le titre|le nom de|le titre de": 1,
    },
    "op_split": {
        "mets|mettre|mets-la|mets-le": {"en pause": "pause", "en route": "resume"},
        "remets": {"en route": "resume", "en marche": "resume"},
        "passe": {"à": "reschedule"},
    },
    "hold_words": {
        "en pause": 1,
    },
    "back_on": {
        "en route|en marche": 1,
    },
    "again": {
        "à nouveau|de nouveau": 1,
    },
    "for_now": {
        "pour l'instant|pour le moment|temporairement|provisoirement|"
        "jusqu'à nouvel ordre": 1,
    },
    "for_good": {
        "définitivement|pour de bon|pour toujours": 1,
    },
    "negative": {
        "non|pas de|pas d'|pas|sans|aucune|aucun|plus de": 1,
    },
    "enough": {
        "suffit|ça suffit|suffira|c'est suffisant|suffirait|suffisent": 1,
    },
    "too_much": {
        "c'est trop tôt|est trop tôt|trop tôt|trop tard|c'est trop tard": 1,
    },
    "same": {
        "même heure|à la même heure|la même heure": 1,
    },
    "called": {
        "s'appelle|doit s'appeler|devrait s'appeler|s'appeler": 1,
    },
    "aside": {
        "je suis|je serai|parce que|parce qu'|car|puisque|comme je|c'est|j'ai|on est|"
        "nous sommes|il est|elle est|je pars": 1,
    },
    "reason": {
        "parce que|parce qu'|car|puisque": 1,
    },
    "says_is": {
        "est|était": 1,
    },
    "via": {
        "par|via|sur|en": 1,
    },
    "points_at": {
        "cette tâche|ce rappel|celui-ci|celle-ci|celui-là|celle-là": 1,
    },
    "small": {
        "je|tu|il|elle|on|vous|nous|peux|peux-tu|pourrais-tu|pouvez-vous|veux|voudrais|"
        "je voudrais|je veux|tu peux|fais|être|soit|ça|cela|ce|c'est|est|mon|mes|ma|"
        "sur|par|vas-y|oui|non|ok|d'accord|merci|si possible|et|alors|donc|juste|moi|"
        "me|avoir|recevoir|aller|plus|besoin|mieux|bien|dans|avec|qu|que|pour|de|"
        "celle de|celui de|heure|l'heure": 1,
    },
}  # fmt: skip
