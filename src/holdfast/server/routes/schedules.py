"""Schedules: made, found, changed, steered, and tried before they are made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from starlette.responses import Response

from holdfast.core.schedule_answers import (
    BackfillAnswer,
    BriefSchedule,
    FiredAnswer,
    PreviewAnswer,
    ScheduleAnswer,
    ScheduleDeleted,
    ScheduleList,
    ScheduleRunList,
)
from holdfast.errors import InvalidOption
from holdfast.schedules.book import MOST_BACKFILLED
from holdfast.schedules.previews import preview_of
from holdfast.schedules.rule_words import KINDS, rule_of
from holdfast.schedules.rule_words import WORDS as RULE_WORDS
from holdfast.schedules.series import Series
from holdfast.server.access import SCHEDULES
from holdfast.server.answers import answer
from holdfast.server.instants import read_instant
from holdfast.server.models.schedules import (
    MOST_PREVIEWED,
    AboutWords,
    Backfilling,
    BehaviourWords,
    ChangedSchedule,
    NewSchedule,
    Pausing,
    PreviewQuery,
    PreviewWords,
    RunSearch,
    ScheduleSearch,
    TaskWords,
)
from holdfast.server.models.tasks import NoQuery, Submit
from holdfast.server.problems import Refused, refusal_of
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.schedule_reach import ScheduleReach
from holdfast.server.service import Service
from holdfast.server.shape import Shape

routes = Routes("schedules")

ONE: Final = f"{SCHEDULES}/{{schedule}}"
NEW: Final = Shape(NewSchedule, nullable=True)
STEERED: Final = (ScheduleAnswer, BriefSchedule)
PAGE: Final = 100
SHOWN: Final = 10
_TASK_WORDS: Final = ("task_type", *TaskWords.__annotations__)
_OUR_WORDS: Final = {
    **{word: word for word in (*BehaviourWords.__annotations__, *AboutWords.__annotations__)},
    "catch_up_window_seconds": "catch_up_window",
    "jitter_seconds": "jitter",
}
_TAKEN: Final = "there is a schedule"


async def reach_of(request: ApiRequest[Any]) -> ScheduleReach:
    """The verbs about schedules, as far as the token reaches."""
    return ScheduleReach(await request.verbs(), request.token, await request.reach())


@routes(
    "POST",
    SCHEDULES,
    "Make a schedule",
    says="It submits its task whenever its rule says so, from now on. 422 names what is wrong with "
    "the rule, its zone or its times, and nothing is stored then.",
    answers=STEERED,
    status=201,
    takes=NEW,
    refuses=(409,),
    largest=None,
    example={
        "name": "reports", "task_type": "report", "parameters": {"user": 7},
        "cron": "0 9 * * 1-5", "tz": "Europe/Berlin", "overlap": "skip", "owner": "ann",
    },
)  # fmt: skip
async def create_schedule(request: ApiRequest[NewSchedule]) -> Response:
    reach = await reach_of(request)
    series = await created(request.service, reach, request.words)
    return answer(reach.shown(series), 201, {"Location": f"{SCHEDULES}/{series.id}"})


@routes(
    "GET",
    SCHEDULES,
    "List schedules, by name",
    says="Those of one `owner`, or of all. `next`, sent as `after`, brings more.",
    answers=ScheduleList,
    query=Shape(ScheduleSearch),
)
async def list_schedules(request: ApiRequest[ScheduleSearch]) -> Response:
    asked, reach = request.words, await reach_of(request)
    page = await reach.list(
        owner=asked.get("owner"), after=asked.get("after", ""), limit=asked.get("limit", PAGE)
    )
    return answer({"schedules": [reach.shown(each) for each in page.schedules], "next": page.next})


@routes(
    "POST",
    f"{SCHEDULES}/preview",
    "Try a rule: when would it run?",
    says="In any zone, over any range. Nothing is stored. The first ten runs from now on, unless "
    "`n`, `after` or `between` says otherwise.",
    answers=PreviewAnswer,
    takes=Shape(PreviewWords, nullable=True),
    example={"cron": "0 9 * * 1-5", "tz": "Europe/Berlin", "n": 5, "show_tz": "Asia/Tokyo"},
)
async def preview_rule(request: ApiRequest[PreviewWords]) -> Response:
    asked = request.words
    rule, now = rule_of(asked), await (await request.verbs()).now()
    if "between" in asked and "after" in asked:
        raise InvalidOption("between", "expected `after` or `between`, got both")
    begin = end = None
    if "between" in asked:
        begin, end = (read_instant("between", each) for each in asked["between"])
    after = read_instant("after", asked["after"]) if "after" in asked else now
    number = asked.get("n", SHOWN if begin is None else MOST_PREVIEWED)
    tried = partial(preview_of, begin=begin, end=end, tz=asked.get("show_tz"), zone_word="show_tz")
    return answer(await asyncio.to_thread(tried, rule, number, after=after))


@routes("GET", ONE, "Look at one schedule", answers=ScheduleAnswer)
async def get_schedule(request: ApiRequest[NoQuery]) -> Response:
    reach = await reach_of(request)
    return answer(reach.shown(await reach.get(request.named)))


@routes(
    "PATCH",
    ONE,
    "Change a schedule",
    says="What is given; the rest stays. It goes on from now: nothing is run twice, nor made up "
    "for. With `task_type` all that it submits is replaced.",
    answers=STEERED,
    takes=Shape(ChangedSchedule),
    refuses=(409,),
    largest=None,
    example={"cron": "30 9 * * 1-5", "title": "The morning report"},
)
async def change_schedule(request: ApiRequest[ChangedSchedule]) -> Response:
    reach = await reach_of(request)
    return answer(reach.shown(await changed(request.service, reach, request.named, request.words)))


@routes(
    "DELETE",
    ONE,
    "Forget a schedule",
    says="Its tasks stay.",
    answers=ScheduleDeleted,
)
async def delete_schedule(request: ApiRequest[NoQuery]) -> Response:
    await (await reach_of(request)).delete(request.named)
    return answer({"id": request.named, "deleted": True})


@routes(
    "POST",
    f"{ONE}/pause",
    "Pause a schedule",
    says="It runs no more, until it is resumed, or for a while.",
    answers=STEERED,
    takes=Shape(Pausing, nullable=True),
    is_optional=True,
    refuses=(409,),
    example={"until": "2030-01-07T00:00:00Z", "note": "holidays"},
)
async def pause_schedule(request: ApiRequest[Pausing]) -> Response:
    until = request.words.get("until")
    reach = await reach_of(request)
    try:
        series = await reach.pause(
            request.named,
            until=None if until is None else read_instant("until", until),
            note=request.words.get("note"),
        )
    except InvalidOption as error:
        raise not_active(error) from None
    return answer(reach.shown(series))


@routes(
    "POST",
    f"{ONE}/resume",
    "Resume a schedule",
    says="It goes on from now, without what would have run meanwhile.",
    answers=STEERED,
)
async def resume_schedule(request: ApiRequest[NoQuery]) -> Response:
    reach = await reach_of(request)
    return answer(reach.shown(await reach.resume(request.named)))


@routes(
    "POST",
    f"{ONE}/skip",
    "Leave out the next run",
    says="The next one that is not left out yet.",
    answers=STEERED,
    refuses=(409,),
)
async def skip_run(request: ApiRequest[NoQuery]) -> Response:
    reach = await reach_of(request)
    try:
        return answer(reach.shown(await reach.skip(request.named)))
    except InvalidOption as error:
        raise not_active(error) from None


@routes(
    "POST",
    f"{ONE}/trigger",
    "Run a schedule now",
    says="Beside its rule: the next runs stay as they are.",
    answers=FiredAnswer,
    status=201,
    refuses=(409,),
)
async def trigger_schedule(request: ApiRequest[NoQuery]) -> Response:
    return answer({"task_id": await (await reach_of(request)).trigger(request.named)}, 201)


@routes(
    "POST",
    f"{ONE}/backfill",
    "Run a schedule for a range that has passed",
    says="What its rule says for the range, but for the runs that were fired at their time. 422, "
    "and nothing is run, if there are more than `most` (1,000 unless given).",
    answers=BackfillAnswer,
    status=201,
    takes=Shape(Backfilling, nullable=True),
    refuses=(409,),
    example={"begin": "2026-01-05T00:00:00Z", "end": "2026-01-12T00:00:00Z"},
)
async def backfill_schedule(request: ApiRequest[Backfilling]) -> Response:
    asked = request.words
    made = await (await reach_of(request)).backfill(
        request.named,
        read_instant("begin", asked["begin"]),
        read_instant("end", asked["end"]),
        asked.get("most", MOST_BACKFILLED),
    )
    return answer({"task_ids": list(made)}, 201)


@routes(
    "GET",
    f"{ONE}/runs",
    "What became of its runs",
    says="Newest first: fired, skipped and missed ones. `next`, sent as `after`, brings those "
    "before.",
    answers=ScheduleRunList,
    query=Shape(RunSearch),
)
async def list_runs(request: ApiRequest[RunSearch]) -> Response:
    asked = request.words
    reach = await reach_of(request)
    runs = await reach.runs(
        request.named, after=asked.get("after", ""), limit=asked.get("limit", PAGE)
    )
    return answer(runs)


@routes(
    "GET",
    f"{ONE}/preview",
    "When will it run next?",
    says="The next `n` runs (ten unless given) `after` an instant (now unless given). Local times "
    "are in `tz`, its own zone unless given.",
    answers=PreviewAnswer,
    query=Shape(PreviewQuery),
)
async def preview_schedule(request: ApiRequest[PreviewQuery]) -> Response:
    asked = request.words
    series = await (await reach_of(request)).get(request.named)
    now = await (await request.verbs()).now()
    after = read_instant("after", asked["after"]) if "after" in asked else now
    number = asked.get("n", SHOWN)
    look = partial(preview_of, after=after, tz=asked.get("tz"))
    return answer(await asyncio.to_thread(look, series.rule, number))


async def created(service: Service, reach: ScheduleReach, wanted: NewSchedule) -> Series:
    """Make what a body describes, whose form was checked."""
    call = service.submissions.call(_task(wanted))
    rule = rule_of(wanted)
    try:
        return await reach.create(call, rule, wanted.get("name"), words_of(wanted))
    except InvalidOption as error:
        raise _refusal(error, wanted) from None


async def changed(
    service: Service, reach: ScheduleReach, name: str, wanted: ChangedSchedule
) -> Series:
    """Change what a body says, whose form was checked."""
    series = await reach.get(name)
    call, words = None, words_of(wanted)
    if "task_type" in wanted:
        call = service.submissions.call(_task(wanted))
    elif "parameters" in wanted:
        words["parameters"] = wanted["parameters"]
    _refuse_bare_options(wanted)
    rule = None
    if any(word in wanted for word in RULE_WORDS):
        rule = rule_of(wanted, before=series.rule)
    try:
        return await reach.update(series.id, call, rule, words)
    except InvalidOption as error:
        raise _refusal(error, wanted) from None


def words_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """How it behaves and what is to be known of it, in the words of `Book`."""
    return {ours: wanted[word] for word, ours in _OUR_WORDS.items() if word in wanted}


def _task(wanted: Mapping[str, Any]) -> Submit:
    return cast("Submit", {word: wanted[word] for word in _TASK_WORDS if word in wanted})


def _refuse_bare_options(wanted: ChangedSchedule) -> None:
    bare = [w for w in _TASK_WORDS if w in wanted and w not in ("task_type", "parameters")]
    if bare and "task_type" not in wanted:
        raise Refused(
            409,
            "conflicting_options",
            f"{bare[0]}: give the `task_type` and `parameters` with it: what a schedule submits is "
            "replaced as a whole",
            field=bare[0],
        )


def _refusal(error: InvalidOption, wanted: Mapping[str, Any]) -> Refused:
    if error.option == "name" and _TAKEN in str(error):
        return Refused(409, "schedule_exists", str(error), field="name")
    refused = refusal_of(error)
    if error.option == "name":  # elsewhere that is a task's
        refused.field = "name"
    if error.option == "rule":  # by the word that said it
        refused.field = next((word for word in KINDS if word in wanted), "rule")
    return refused


def not_active(error: InvalidOption) -> Refused:
    """What its state does not allow is a conflict: nothing in the request is wrong."""
    if error.option != "name":
        return refusal_of(error)
    return Refused(409, "schedule_not_active", str(error).removeprefix("name: "))
