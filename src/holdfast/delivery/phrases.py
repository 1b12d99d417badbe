"""The few sentences of our own in what is delivered, in the languages of the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PHRASES: Final[Mapping[str, Mapping[str, str]]] = {
    "failed": {
        "en": "This could not be completed.",
        "de": "Das konnte nicht abgeschlossen werden.",
        "es": "No se pudo completar.",
        "fr": "Cela n'a pas pu être terminé.",
        "hi": "यह पूरा नहीं हो सका।",
        "zh": "未能完成。",
    },
    "unsubscribe": {
        "en": "Unsubscribe",
        "de": "Abbestellen",
        "es": "Cancelar la suscripción",
        "fr": "Se désabonner",
        "hi": "सदस्यता समाप्त करें",
        "zh": "退订",
    },
    "title": {
        "en": "Your result",
        "de": "Ihr Ergebnis",
        "es": "Su resultado",
        "fr": "Votre résultat",
        "hi": "आपका परिणाम",
        "zh": "您的结果",
    },
}


def phrase(name: str, language: str | None) -> str:
    """The sentence in this language, or in English."""
    said = _PHRASES[name]
    return said.get((language or "en").lower().partition("-")[0], said["en"])
