"""Templates: what a message looks like on its way, with every value escaped for where it stands.

    Hello {{owner}}, {{title}} is ready.{{#link}} See {{link}}{{/link}}

`{{word}}` is a value. What stands between `{{#word}}` and `{{/word}}` is there if the value is.
In a template whose name ends in `.html` values are escaped, and `{{content}}` keeps its lines and
its links; in all others they are text as it is. There is nothing else: a template cannot compute,
loop or call, so nobody's text can make it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Final

from holdfast.definitions.readers import hint
from holdfast.delivery.phrases import phrase
from holdfast.errors import ConfigError, InvalidOption
from holdfast.ports.channel import Message

DEFAULTS: Final[Mapping[str, str]] = {
    "email.subject.txt": "{{title}}",
    "email.txt": "{{content}}\n{{#link}}\n{{link}}\n{{/link}}{{#unsubscribe_url}}\n-- \n"
    "{{unsubscribe}}: {{unsubscribe_url}}\n{{/unsubscribe_url}}",
    "email.html": '<!DOCTYPE html>\n<html lang="{{language}}"><head><meta charset="utf-8">'
    "<title>{{title}}</title></head>\n"
    '<body style="font-family:sans-serif;line-height:1.5;max-width:40em;margin:auto">\n'
    "<h1>{{title}}</h1>\n<div>{{content}}</div>\n"
    '{{#link}}<p><a href="{{link}}">{{link}}</a></p>\n{{/link}}'
    '{{#unsubscribe_url}}<hr><p><small><a href="{{unsubscribe_url}}">{{unsubscribe}}</a></small>'
    "</p>\n{{/unsubscribe_url}}</body></html>\n",
    "push.title.txt": "{{title}}",
    "push.body.txt": "{{content}}",
}
WORDS: Final = (
    *("title", "content", "owner", "channel", "schedule", "execution", "link", "language"),
    *("unsubscribe", "unsubscribe_url", "failed"),
)
LONGEST: Final = 256 * 1024

_MARK: Final = re.compile(r"\{\{([#/]?)([a-z_]+)\}\}")
_LINK: Final = re.compile(r"https?://[^\s<>\"'\\^`{|}]+[^\s<>\"'\\^`{|}.,;:!?)\]*_]")


class Templates(MutableMapping[str, str]):
    """The templates of an app: the house's, unless others are set.
    `app.delivery.templates["email.subject.txt"] = "News: {{title}}"`.
    """

    def __init__(self, folder: str | None = None) -> None:
        """A file in `folder` that is called like a template stands for it."""
        self._own: dict[str, str] = {}
        if folder is not None:
            self._read_folder(Path(folder))

    def render(self, name: str, message: Message) -> str:
        """The text that a message becomes by this template."""
        is_html = name.endswith(".html")
        values = _values(message)
        if is_html:
            values = {word: html.escape(value) for word, value in values.items()}
            values["content"] = as_html(message.content)
        return _filled(self[name], values)

    def __getitem__(self, name: str) -> str:
        return self._own.get(name) or DEFAULTS[name]

    def __setitem__(self, name: str, text: str) -> None:
        if name not in DEFAULTS:
            raise InvalidOption("templates", f"there is no template {name!r}{hint(name, DEFAULTS)}")
        self._own[name] = _checked(name, text)

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter(DEFAULTS)

    def __len__(self) -> int:
        return len(DEFAULTS)

    def _read_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(
                "delivery_templates", f"delivery_templates: there is no folder {str(folder)!r}"
            )
        for name in DEFAULTS:
            file = folder / name
            if file.is_file():
                self[name] = file.read_text(encoding="utf-8")


def as_html(content: str) -> str:
    """Text as HTML: escaped, lines kept, web links to be followed, and nothing else of it alive."""
    pieces, end = [], 0
    for link in _LINK.finditer(content):
        url = html.escape(link.group())
        pieces.append(html.escape(content[end : link.start()]))
        pieces.append(f'<a href="{url}" rel="noopener noreferrer nofollow">{url}</a>')
        end = link.end()
    pieces.append(html.escape(content[end:]))
    lines = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n")
    return lines.replace("\n", "<br>\n")


def one_line(text: str, longest: int = 200) -> str:
    """Text as a title: nothing that ends a line or hides, and not too much of it."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    short = " ".join(plain.split())
    return short if len(short) <= longest else f"{short[: longest - 1]}…"


def _values(message: Message) -> dict[str, str]:
    language = message.language or "en"
    return {
        "title": one_line(message.title),
        "content": message.content,
        "owner": message.owner or "",
        "channel": message.channel,
        "schedule": message.schedule or "",
        "execution": message.execution or "",
        "link": message.link or "",
        "language": language,
        "failed": phrase("failed", language) if message.is_failure else "",
        "unsubscribe": phrase("unsubscribe", language),
        "unsubscribe_url": message.unsubscribe_url or "",
    }


def _checked(name: str, text: str) -> str:
    """A template, if all that it says is known and what it opens is closed."""
    if len(text) > LONGEST:
        raise InvalidOption("templates", f"{name}: expected a text of {LONGEST:,} characters")
    opened: list[str] = []
    for kind, word in _MARK.findall(text):
        if word not in WORDS:
            raise InvalidOption("templates", f"{name}: no {{{{{word}}}}} here{hint(word, WORDS)}")
        if kind == "#":
            opened.append(word)
        elif kind == "/" and (not opened or opened.pop() != word):
            raise InvalidOption("templates", f"{name}: {{{{/{word}}}}} closes what is not open")
    if opened:
        raise InvalidOption("templates", f"{name}: {{{{#{opened[-1]}}}}} is not closed")
    return text


def _filled(template: str, values: Mapping[str, str]) -> str:
    """One pass over the template: what a value holds is never read as a template."""
    pieces: list[str] = []
    hidden, end = 0, 0
    for mark in _MARK.finditer(template):
        kind, word = mark.groups()
        if not hidden:
            pieces.append(template[end : mark.start()])
            pieces.append("" if kind else values[word])
        if kind and (hidden or not values[word]):
            hidden += 1 if kind == "#" else -1 if hidden else 0
        end = mark.end()
    pieces.append(template[end:])
    return "".join(pieces)
