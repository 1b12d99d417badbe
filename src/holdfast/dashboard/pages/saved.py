"""Keeps and forgets saved views; they are shown on the page of tasks."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from holdfast.dashboard import saved_views
from holdfast.dashboard.page import READ, Done, Form, Page, View, url

page = Page("/tasks/views", "tasks.html", "Saved views", rule=READ, is_live=False)


@page.read
async def read(view: View) -> Done:
    return Done(to=view.url("/tasks"))


@page.action("/tasks/views", rule=READ, back="/tasks")
async def keep(form: Form) -> Done:
    query, name = urlencode(parse_qsl(form.words.get("query", ""))), form.words.get("name", "")
    await saved_views.save(await form.verbs(), form.token, name, query)
    return Done(to=_list(form, query), says=f"Saved as {' '.join(name.split())}.")


@page.action("/tasks/views/forget", rule=READ, back="/tasks")
async def forget(form: Form) -> Done:
    await saved_views.forget(await form.verbs(), form.token, form.words.get("key", ""))
    return Done(to=form.url("/tasks"), says="The saved view is gone.")


def _list(form: Form, query: str) -> str:
    return url(form.root, "/tasks") + (f"?{query}" if query else "")
