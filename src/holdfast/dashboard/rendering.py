"""Templates: whole pages, and the parts of them that are kept up to date.

Whatever is shown is escaped, by the templates' own autoescape; the few filters here that make
markup escape what they are given. There is no inline script or style in any template, nor could it
run: see `headers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from holdfast.core.task import Json
from holdfast.dashboard.schedule_paths import path_of
from holdfast.dashboard.words import (
    duration,
    instant,
    local_words,
    money,
    number,
    plural,
    sentence,
    utc,
)

LIVE: Final = "live_"
"""How the names of the blocks begin that are fragments."""

Fragments = Mapping[str, str]


@cache
def templates() -> Environment:
    """The templates, compiled once for the process."""
    environment = Environment(
        loader=PackageLoader("holdfast.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "time": time,
        "ago": ago,
        "duration": duration,
        "number": number,
        "plural": plural,
        "sentence": sentence,
        "pretty": pretty,
        "local_words": local_words,
        "money": money,
        "since": lambda text: ago(datetime.fromisoformat(text)),
    }
    environment.globals["path_of"] = path_of
    # Not imported by each template: a block that is rendered alone would not have them.
    environment.globals["ui"] = environment.get_template("macros.html").module
    return environment


def whole(template: str, shown: Mapping[str, Any]) -> str:
    """A page."""
    return templates().get_template(template).render(shown)


def fragments(template: str, shown: Mapping[str, Any]) -> Fragments:
    """The live parts of a page, by their names."""
    found = templates().get_template(template)
    context = found.new_context(dict(shown))
    return {
        name.removeprefix(LIVE): "".join(block(context))
        for name, block in found.blocks.items()
        if name.startswith(LIVE)
    }


def time(at: datetime | None) -> Markup:
    """An instant: in UTC here, and made the viewer's own time by `times.js`."""
    return _time(at, "time")


def ago(at: datetime | None) -> Markup:
    """The same, as how long ago it was, or how soon it will be."""
    return _time(at, "ago")


def _time(at: datetime | None, form: str) -> Markup:
    if at is None:
        return Markup("")
    return Markup('<time datetime="{}" data-form="{}" title="{}">{}</time>').format(
        instant(at), form, utc(at), utc(at)
    )


def pretty(value: Json) -> str:
    """JSON for people. What is no JSON at all, as stored bytes may be, is shown as text."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode()
    except (TypeError, ValueError):
        return str(value)
