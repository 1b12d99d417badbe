"""Forgetting a schedule: it is asked once more."""

from __future__ import annotations

from holdfast.dashboard.page import STEER, Done, Form, Page, Shown, View
from holdfast.dashboard.schedule_paths import path_of

page = Page("/schedules/{name}/delete", "sure.html", "Delete", rule=STEER, is_live=False)


@page.read
async def read(view: View) -> Shown:
    series = await (await view.schedules()).get(view.params["name"])
    called = series.about.title or series.id
    says = "It runs no more and is forgotten. Its tasks stay."
    if series.declared is not None:
        says += " Code declares it: it is made anew when that starts."
    return {
        "title": f"Delete {called}",
        "heading": f"Delete the schedule {called}?",
        "says": says,
        "action": f"/schedules/{series.id}/delete",
        "fields": {},
        "button": "Delete the schedule",
        "back": path_of(series.id),
    }


@page.action("/schedules/{name}/delete", rule=STEER)
async def delete(form: Form) -> Done:
    await (await form.schedules()).delete(form.params["name"])
    return Done(to=form.url("/schedules"), says=f"The schedule {form.params['name']} is gone.")
