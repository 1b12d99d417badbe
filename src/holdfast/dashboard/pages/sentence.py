"""A schedule from a sentence: what the assistant understood, and what it does once that is
confirmed. Before, no schedule is made nor changed.
"""

from __future__ import annotations

import re
import secrets
from typing import Final

from holdfast.assistant.requests import LONGEST_TEXT
from holdfast.core.assistant_answers import AssistantAnswer
from holdfast.dashboard.page import SUBMIT, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.pages.schedules import has_agent
from holdfast.dashboard.problems import NONE, Problems, problems_of
from holdfast.dashboard.schedule_paths import path_of
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.server.assistant_reach import reached
from holdfast.server.problems import Refused

page = Page(
    "/schedules/new/sentence", "sentence.html", "Schedule from a sentence", rule=SUBMIT,
    is_live=False,
)  # fmt: skip

FIELDS: Final = ("text", "zone", "owner")
NAMES: Final = {"messages": "text", "timezone": "zone"}

_CHAT: Final = re.compile(r"[0-9a-f]{16}", re.ASCII).fullmatch


@page.read
async def read(view: View) -> Shown:
    words = {name: view.query.get(name, "") for name in FIELDS}
    return _shown(view, words | {"zone": words["zone"] or "UTC"}, secrets.token_hex(8))


@page.action("/schedules/new/sentence", rule=SUBMIT)
async def ask(form: Form) -> Done | Again:
    words = {name: form.words.get(name, "").strip() for name in FIELDS}
    chat = form.words.get("chat", "")
    chat = chat if _CHAT(chat) else secrets.token_hex(8)
    is_sure = form.words.get("confirm") == "yes"
    try:
        answer = await _answer(form, words, chat, is_sure=is_sure)
    except (HoldfastError, Refused) as error:
        return Again(shown=_shown(form, words, chat, problems_of(error, FIELDS, NAMES)))
    if answer["status"] in ("created", "updated"):
        name = answer["task_id"]
        to = "/schedules" if name is None else path_of(name)
        return Done(to=form.url(to), says=answer["message"])
    shown = _shown(form, words, chat) | {"answer": answer, "status": 200}
    return Again(shown=shown)


async def _answer(
    form: Form, words: dict[str, str], chat: str, *, is_sure: bool
) -> AssistantAnswer:
    owner = words["owner"] or None
    assistant, owner = await reached(form.service, form.token, owner)
    if len(words["text"]) > LONGEST_TEXT:
        raise InvalidOption("text", f"expected {LONGEST_TEXT:,} characters at most")
    if not words["text"] and not is_sure:
        raise InvalidOption("text", "say what is to be done, and when")
    messages = [] if is_sure else [{"role": "user", "content": words["text"]}]
    return await assistant.message(
        messages,
        # Of this token alone: nobody confirms what somebody else was asked.
        chat_id=f"dashboard-{form.token.id}-{chat}",
        timezone=words["zone"] or "UTC",
        owner=owner,
        confirm=is_sure,
    )


def _shown(view: View, words: dict[str, str], chat: str, problems: Problems = NONE) -> Shown:
    return {
        "given": words,
        "chat": chat,
        "problems": problems,
        "answer": None,
        "has_agent": has_agent(view),
        "is_bound": view.token.bounds.owner is not None,
    }
