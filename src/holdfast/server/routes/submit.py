"""Submitting: one task, an array of them, or a stream of lines."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import with_config
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast.client import SLICE, Client
from holdfast.core.task import Added, Json
from holdfast.core.task_answers import Accepted, Submitted, SubmittedMany
from holdfast.definitions.call import Call
from holdfast.errors import HoldfastError, StoreError
from holdfast.server.access import TASKS
from holdfast.server.answers import answer
from holdfast.server.bodies import JSON, LINES, parse, read_body, read_lines, require
from holdfast.server.compositions import Part, trace_of
from holdfast.server.headers import traceparent_of
from holdfast.server.models import words
from holdfast.server.problems import Refused, refusal_of
from holdfast.server.reach import Reach
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.service import Service
from holdfast.server.shape import SPELLED, Shape
from holdfast.server.submission import ROOM, SUBMIT
from holdfast.views import submitted

routes = Routes("tasks")


@with_config(SPELLED)
class SubmitQuery(TypedDict, total=False):
    """The query of a submit."""

    ids: words.YesNo


@routes(
    "POST",
    TASKS,
    "Submit one task, or many",
    says="One object, an array (all or none), or a stream of lines (`application/x-ndjson`, any "
    "length, stored in slices of 1,000). A task with `children` is stored with all of them, or not "
    "at all, and the answer is its own. When the answer comes, the tasks are durable. The "
    "header `traceparent` names the trace of the tasks that name none themselves.",
    answers={201: (Submitted, SubmittedMany, Accepted), 200: Submitted},
    status=201,
    body=SUBMIT,
    query=Shape(SubmitQuery),
    refuses=(409,),
)
async def submit(request: ApiRequest[SubmitQuery]) -> Response:
    service = request.service
    if require(request, JSON, LINES) == LINES:
        return await _submit_lines(request, wants_ids=request.words.get("ids") == "true")
    raw = await read_body(request)
    body = parse(raw)
    reach = await request.reach()
    is_array = type(body) is list
    if is_array:
        parts = service.submissions.many(body, len(raw), reach.bounded)
    else:
        is_large = len(raw) > service.settings.max_payload
        parts = [reach.bounded(service.submissions.part(body, is_large=is_large))]
    client = await request.verbs()
    await service.gauge.look(client)
    trace = traceparent_of(request)
    added = await reach.submit_many(parts, trace)
    told = [
        submitted(each, _position(service, client, part, each), trace_of(part) or trace)
        for part, each in zip(parts, added, strict=True)
    ]
    if is_array:
        return answer({"tasks": told}, 201)
    return answer(told[0], 201 if added[0].created else 200)


async def _submit_lines(request: ApiRequest[SubmitQuery], *, wants_ids: bool) -> Response:
    """Store the lines in slices, as they come. What stands before the first bad line is stored,
    nothing after it: the answer's numbers are the whole truth.
    """
    service, reach = request.service, await request.reach()
    stream = Stream(reach, traceparent_of(request), wants_ids=wants_ids)
    number = 0
    try:
        async for number, line in read_lines(request, service.settings.max_payload + ROOM):
            await stream.take(number, reach.bounded(service.submissions.part(parse(line))))
        await stream.store()
    except (HoldfastError, Refused) as error:
        refused = error if isinstance(error, Refused) else refusal_of(error)
        raise await stream.broken(refused, number) from None
    return answer(stream.told, 201)


class Stream:
    """What came of a stream of lines so far."""

    def __init__(self, reach: Reach, traceparent: str | None, *, wants_ids: bool) -> None:
        self._reach = reach
        self._traceparent = traceparent
        self._waiting: list[tuple[int, Part]] = []
        self._failed_at: int | None = None
        self.told: dict[str, Json] = {"accepted": 0, "existing": 0}
        if wants_ids:
            self.told["task_ids"] = []

    async def take(self, number: int, part: Part) -> None:
        """Add a line's task; every full slice is stored."""
        self._waiting.append((number, part))
        if len(self._waiting) >= SLICE:
            await self.store()

    async def store(self) -> None:
        """Store what waits. A slice with a conflict in it is stored up to that."""
        lines, self._waiting = self._waiting, []
        try:
            await self._submit([part for _, part in lines])
        except (HoldfastError, Refused) as error:
            if isinstance(error, StoreError):
                raise
            for number, part in lines:
                self._failed_at = number
                await self._submit([part])
            self._failed_at = None

    async def broken(self, refused: Refused, number: int) -> Refused:
        """The refusal of the stream, once what stood before the bad line is stored."""
        if self._failed_at is None and refused.status < 500:
            try:
                await self.store()
            except HoldfastError as error:
                refused = refusal_of(error)
        refused.extra |= self.told | {"failed_at_line": self._failed_at or number}
        return refused

    async def _submit(self, parts: Sequence[Part]) -> None:
        added = await self._reach.submit_many(parts, self._traceparent)
        self.told["accepted"] += len(added)
        self.told["existing"] += sum(not each.created for each in added)
        if "task_ids" in self.told:
            self.told["task_ids"] += [each.task_id for each in added]


def _position(service: Service, client: Client, call: Part, added: Added) -> int | None:
    if not isinstance(call, Call) or call.options.after or call.results:
        return None  # it waits for others
    if call.options.delay or call.options.run_at is not None or call.coalescing is not None:
        return None
    queue = call.options.queue or call.definition.queue
    priority = call.options.priority or call.definition.priority
    return service.gauge.position(client, queue, priority, added)
