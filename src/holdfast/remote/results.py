"""Takes results: each is saved if its fence holds, recognised as a repeat, or refused.

A result of a task that this process handed out needs no read. For any other the task is read first:
a server that was restarted, or another one, takes the result as well. What is stale goes to the
store all the same, which refuses it, notes that in the task's history and counts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import orjson

from holdfast.codec.hiding import without
from holdfast.codec.text import storable
from holdfast.core.attempt import Claim, Refusal
from holdfast.core.lifecycle import Deferred, Failed, Outcome, Released, Stopped, Succeeded
from holdfast.core.payload import check_size, check_value
from holdfast.core.task import (
    AttemptEnd,
    Cause,
    Json,
    Priority,
    State,
    Task,
    TaskError,
    TaskId,
    WorkerId,
)
from holdfast.core.trace import traceparent_of
from holdfast.engine.judging import Judge, bringing, storable_error
from holdfast.errors import LeaseLost, PayloadRefused, TaskNotFound
from holdfast.flow.bodies import BODY, after_its_body, as_child, is_body_first
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.remote.leases import Leases
from holdfast.remote.steps import RemoteSteps
from holdfast.remote.values import UNSAID, RemoteResult, ResultStatus, TakenResult, Verdict

ENDS: dict[ResultStatus, frozenset[AttemptEnd]] = {
    ResultStatus.COMPLETED: frozenset({AttemptEnd.COMPLETED}),
    ResultStatus.FAILED: frozenset({AttemptEnd.ERROR}),
    ResultStatus.RELEASED: frozenset({AttemptEnd.RELEASED, AttemptEnd.CANCELLED}),
    ResultStatus.DEFERRED: frozenset({AttemptEnd.RELEASED, AttemptEnd.CANCELLED}),
}
"""How an attempt may stand in the history if this is a repeat of what was said before."""

TYPE_LIMIT = 200

SAY_WHICH = (
    "this worker has had the task more than once, so the result must say which attempt it is of: "
    "send the `attempt` that came with the task"
)

STILL_RUNS = (
    " Nothing was recorded, and the attempt still runs: send the result with other follow-ups, or "
    "say that it failed."
)


class Results:
    """Where workers hand in what they have done."""

    def __init__(
        self,
        store: Store,
        leases: Leases,
        judge: Judge,
        steps: RemoteSteps,
        *,
        max_result: int,
        window: float,
        keep: float,
    ) -> None:
        """`window` is that of the follow-ups' idempotency keys, in seconds, and for `keep` seconds
        the result of a body is kept whose task waits for its children.
        """
        self._store = store
        self._leases = leases
        self._judge = judge
        self._steps = steps
        self._max_result = max_result
        self._window = window
        self._keep = keep

    async def take(self, worker_id: WorkerId, results: Sequence[RemoteResult]) -> list[TakenResult]:
        """Take results of one worker; the answers come in the same order."""
        answers: dict[int, TakenResult] = {}
        for numbers in _rounds(results):
            some: dict[int, RemoteResult] = {}
            for number in numbers:
                result = await self._numbered(worker_id, results[number])
                if result is None:
                    answers[number] = _answer(results[number], Verdict.AMBIGUOUS, SAY_WHICH)
                else:
                    some[number] = result
            taken = await self._take_some(worker_id, list(some.values()))
            answers.update(zip(some, taken, strict=True))
        return [answers[number] for number in range(len(results))]

    async def _numbered(self, worker_id: WorkerId, result: RemoteResult) -> RemoteResult | None:
        """The result with the attempt that it is about; None if the worker had the task more than
        once: what it did in one attempt must not count for another.
        """
        if result.attempt != UNSAID:
            return result
        if self._leases.find(worker_id, result.task_id, 1) is not None:
            return replace(result, attempt=1)
        history = await self._store.history(result.task_id)
        attempts = () if history is None else history.attempts
        had = [attempt.number for attempt in attempts if attempt.worker_id == worker_id]
        if len(had) > 1:
            return None
        return replace(result, attempt=had[0] if had else UNSAID)

    async def _take_some(
        self, worker_id: WorkerId, results: Sequence[RemoteResult]
    ) -> list[TakenResult]:
        """Take results of different tasks, in one commit."""
        leased = {
            one.task_id: self._leases.find(worker_id, one.task_id, one.attempt) for one in results
        }
        # Those that this process did not hand out.
        others = [task_id for task_id, claim in leased.items() if claim is None]
        tasks = {task.id: task for task in await self._leases.read(others)}
        answers: dict[TaskId, TakenResult] = {}
        ended: list[tuple[Claim, Outcome]] = []
        for result in results:
            claim, task = leased[result.task_id], tasks.get(result.task_id)
            if claim is None and task is not None:
                if await self._is_repeat(task, worker_id, result):
                    answers[result.task_id] = _answer(result, Verdict.REPEATED)
                    continue
                claim = Claim.of(task)._replace(attempt=result.attempt, worker_id=worker_id)
            try:
                ended.append(await self._ended(worker_id, result, claim))
            except PayloadRefused as error:
                answers[result.task_id] = _answer(result, Verdict.INVALID, str(error))
                continue
            answers[result.task_id] = _answer(result, Verdict.SAVED)
        for task_id, refusal in (await self._settled(ended)).items():
            is_known = leased[task_id] is not None or task_id in tasks
            answers[task_id] = _refused(answers[task_id], refusal, is_known=is_known)
        return [answers[result.task_id] for result in results]

    async def _settled(self, ended: Sequence[tuple[Claim, Outcome]]) -> Mapping[TaskId, Refusal]:
        """Settle these. What one was about to wait for may have come: it goes on at once."""
        refused = dict(await self._leases.settle(ended))
        again = [
            (claim, Deferred())
            for claim, outcome in ended
            if isinstance(outcome, Deferred)
            and claim.task_id in refused
            and refused[claim.task_id].conflict is not None
        ]
        for claim, _ in again:
            del refused[claim.task_id]
        return refused | dict(await self._leases.settle(again))

    async def _is_repeat(self, task: Task, worker_id: WorkerId, result: RemoteResult) -> bool:
        """Whether this attempt stands in the history as the worker says now."""
        if (task.attempt, task.worker_id) == (result.attempt, worker_id) and (
            task.state is State.RUNNING
        ):
            return False
        history = await self._store.history(task.id)
        ends = ENDS[result.status]
        if result.status is ResultStatus.COMPLETED and await one_record(self._store, BODY, task.id):
            ends |= {AttemptEnd.RELEASED}  # it waits for its children
        return history is not None and any(
            (attempt.number, attempt.worker_id) == (result.attempt, worker_id)
            and attempt.ended in ends
            for attempt in history.attempts
        )

    async def _ended(
        self, worker_id: WorkerId, result: RemoteResult, claim: Claim | None
    ) -> tuple[Claim, Outcome]:
        """What the worker says. `PayloadRefused` for a result that no store may hold."""
        if claim is None:
            # No such task: for the store to refuse and count.
            return _claim_of_nothing(worker_id, result), Released()
        match result.status:
            case ResultStatus.COMPLETED:
                return claim, self._success(claim, result)
            case ResultStatus.FAILED:
                error = self._error(claim, result.error)
                return claim, Failed(error, retry_after=result.retry_after)
            case ResultStatus.RELEASED:
                return claim, Stopped() if claim.cancel_requested else Released()
            case ResultStatus.DEFERRED:
                assert result.until is not None
                if claim.cancel_requested:
                    return claim, Stopped()
                return claim, await self._steps.defer(claim, result.until)

    def _success(self, claim: Claim, result: RemoteResult) -> Outcome:
        success = Succeeded(encoded(result.result, self._max_result))
        if not (result.follow_ups or result.children or is_body_first(claim)):
            return success
        trace = traceparent_of(claim.task_id, claim.trace, claim.attempt)
        tasks = [*result.follow_ups, *(as_child(new, claim.task_id) for new in result.children)]
        tasks = [new._replace(trace=new.trace or trace) for new in tasks]
        return after_its_body(claim, bringing(success, tasks, self._window), self._keep)

    def _error(self, claim: Claim, error: TaskError | None) -> TaskError:
        if error is None:
            return TaskError(type="Error", message="the worker did not say what went wrong")
        secrets = self._judge.secrets_of(claim)
        kind = storable(without(error.type, secrets), TYPE_LIMIT)
        return storable_error(replace(error, type=kind), secrets)


def _rounds(results: Sequence[RemoteResult]) -> Iterator[list[int]]:
    """The numbers of results, cut so that no task is twice in one part: the order decides."""
    part: list[int] = []
    seen: set[TaskId] = set()
    for number, result in enumerate(results):
        if result.task_id in seen:
            yield part
            part, seen = [], set()
        part.append(number)
        seen.add(result.task_id)
    if part:
        yield part


def _answer(result: RemoteResult, verdict: Verdict, detail: str | None = None) -> TakenResult:
    return TakenResult(
        task_id=result.task_id, attempt=result.attempt, verdict=verdict, detail=detail
    )


def _refused(answer: TakenResult, refusal: Refusal, *, is_known: bool) -> TakenResult:
    if refusal.conflict is not None:
        return replace(answer, verdict=Verdict.CONFLICT, detail=refusal.conflict + STILL_RUNS)
    if not is_known:
        detail = str(TaskNotFound(answer.task_id))
        return replace(answer, verdict=Verdict.UNKNOWN, detail=detail)
    lost = LeaseLost(answer.task_id, answer.attempt)  # who has it now is not told
    return replace(answer, verdict=Verdict.STALE, detail=str(lost))


def _claim_of_nothing(worker_id: WorkerId, result: RemoteResult) -> Claim:
    return Claim(
        result.task_id, result.attempt, worker_id, "", "", Priority.NORMAL, b"", 0, 0, 0, None,
        None, None, None, Cause.SUBMITTED, None, None, False,
    )  # fmt: skip


def encoded(value: Json, limit: int) -> bytes:
    """A result as it is stored; the rules are those of payloads."""
    check_value(value, "result")
    result = orjson.dumps(value)
    check_size(result, limit, what="result")
    return result
