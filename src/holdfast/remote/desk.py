"""Takes results: each is saved if its fence holds, recognised as a repeat, or refused.

A result of a task that this process handed out needs no read. For any other the task is read first:
a server that was restarted, or another one, takes the result as well. What is stale goes to the
store all the same, which refuses it, notes that in the task's history and counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, State, Task, TaskId, WorkerId
from holdfast.errors import LeaseLost, PayloadRefused, TaskNotFound
from holdfast.ports.store import TaskStore
from holdfast.remote.handouts import Handouts
from holdfast.remote.values import UNSAID, RemoteResult, ResultAnswer, ResultStatus, Verdict
from holdfast.remote.verdicts import ENDS, Judge

_BARE_ENDS = {
    ResultStatus.COMPLETED: (State.COMPLETED, AttemptEnd.COMPLETED),
    ResultStatus.FAILED: (State.FAILED, AttemptEnd.ERROR),
    ResultStatus.RELEASED: (State.QUEUED, AttemptEnd.RELEASED),
}

SAY_WHICH = (
    "this worker has had the task more than once, so the result must say which attempt it is of: "
    "send the `attempt` that came with the task"
)

Saved = Callable[[Sequence[tuple[Claim, Settlement]]], None]


class Desk:
    """Where workers hand in what they have done."""

    def __init__(
        self, store: TaskStore, handouts: Handouts, judge: Judge, *, on_saved: Saved
    ) -> None:
        self._store = store
        self._handouts = handouts
        self._judge = judge
        self._on_saved = on_saved

    async def take(
        self, worker_id: WorkerId, results: Sequence[RemoteResult]
    ) -> list[ResultAnswer]:
        """Take results of one worker; the answers come in the same order."""
        answers: dict[int, ResultAnswer] = {}
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
        if self._handouts.find(worker_id, result.task_id, 1) is not None:
            return replace(result, attempt=1)
        history = await self._store.history(result.task_id)
        attempts = () if history is None else history.attempts
        had = [attempt.number for attempt in attempts if attempt.worker_id == worker_id]
        if len(had) > 1:
            return None
        return replace(result, attempt=had[0] if had else UNSAID)

    async def _take_some(
        self, worker_id: WorkerId, results: Sequence[RemoteResult]
    ) -> list[ResultAnswer]:
        """Take results of different tasks, in one commit."""
        tasks = await self._read(worker_id, results)
        answers: dict[TaskId, ResultAnswer] = {}
        pairs: list[tuple[RemoteResult, Claim | None, Settlement]] = []
        for result in results:
            claim = self._handouts.find(worker_id, result.task_id, result.attempt)
            task = tasks.get(result.task_id)
            if claim is None and task is not None:
                if await self._is_repeat(task, worker_id, result):
                    answers[result.task_id] = _answer(result, Verdict.REPEATED)
                    continue
                claim = Claim.of(task)._replace(attempt=result.attempt, worker_id=worker_id)
            try:
                pairs.append((result, claim, self._settle(worker_id, result, claim)))
            except PayloadRefused as error:
                answers[result.task_id] = _answer(result, Verdict.INVALID, str(error))
        answers |= await self._save(pairs)
        return [answers[result.task_id] for result in results]

    async def _read(
        self, worker_id: WorkerId, results: Sequence[RemoteResult]
    ) -> dict[TaskId, Task]:
        """The tasks that this process did not hand out."""
        unknown = tuple(
            result.task_id
            for result in results
            if self._handouts.find(worker_id, result.task_id, result.attempt) is None
        )
        if not unknown:
            return {}
        page = await self._store.list(TaskFilter(ids=unknown), limit=len(unknown))
        return {task.id: task for task in page.tasks}

    async def _is_repeat(self, task: Task, worker_id: WorkerId, result: RemoteResult) -> bool:
        """Whether this attempt stands in the history as the worker says now."""
        if (task.attempt, task.worker_id) == (result.attempt, worker_id) and (
            task.state is State.RUNNING
        ):
            return False
        history = await self._store.history(task.id)
        return history is not None and any(
            (attempt.number, attempt.worker_id) == (result.attempt, worker_id)
            and attempt.ended in ENDS[result.status]
            for attempt in history.attempts
        )

    def _settle(self, worker_id: WorkerId, result: RemoteResult, claim: Claim | None) -> Settlement:
        if claim is None:
            # No such task: for the store to refuse and count.
            state, ended = _BARE_ENDS[result.status]
            return Settlement(result.task_id, result.attempt, worker_id, state, ended, 0, 0)
        outcome = self._judge.outcome(result, claim)
        return self._judge.settle(claim, outcome)

    async def _save(
        self, pairs: Sequence[tuple[RemoteResult, Claim | None, Settlement]]
    ) -> dict[TaskId, ResultAnswer]:
        if not pairs:
            return {}
        refusals = await self._store.save([settlement for _, _, settlement in pairs])
        refused = {refusal.task_id: refusal for refusal in refusals}
        answers: dict[TaskId, ResultAnswer] = {}
        for result, claim, _ in pairs:
            refusal = refused.get(result.task_id)
            if refusal is None:
                answers[result.task_id] = _answer(result, Verdict.SAVED)
            elif claim is None:
                told = str(TaskNotFound(result.task_id))
                answers[result.task_id] = _answer(result, Verdict.UNKNOWN, told)
            else:
                lost = LeaseLost(result.task_id, result.attempt)  # who has it now is not told
                answers[result.task_id] = _answer(result, Verdict.STALE, str(lost))
        known = [(claim, settlement) for _, claim, settlement in pairs if claim is not None]
        self._handouts.drop([claim for claim, _ in known])
        self._on_saved([pair for pair in known if pair[0].task_id not in refused])
        return answers


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


def _answer(result: RemoteResult, verdict: Verdict, detail: str | None = None) -> ResultAnswer:
    return ResultAnswer(
        task_id=result.task_id, attempt=result.attempt, verdict=verdict, detail=detail
    )
