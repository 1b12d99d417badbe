"""One run of a handler over several tasks, which then end each by itself.

A `BatchRun` is a run like any other to slots and runners: one body, one time limit, one reason to
stop. Its `BatchBody` stands in for the definition: it hands the items of all members to the
handler as a list, and takes apart what that returns.

A member that alone cannot be read, or was cancelled and its body knows, ends so. The shortest time
limit of the members is that of the run: none of them runs longer than it may.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from holdfast.core.attempt import Claim, Report
from holdfast.core.lifecycle import Outcome, Stopped, Succeeded
from holdfast.core.task import Cost, NewTask, Progress, TaskId
from holdfast.definitions.batch_context import BatchContext
from holdfast.definitions.context import Context, ContextSink, enter_context
from holdfast.definitions.definition import Definition
from holdfast.engine.judging import bringing
from holdfast.errors import PayloadRefused
from holdfast.flow.bodies import after_its_body, is_body_first
from holdfast.worker.batch_claim import BatchClaim
from holdfast.worker.run import Run, StopReason
from holdfast.worker.verdict import accept, judge

AnyDefinition = Definition[..., Any, Any]


class Member(ContextSink, Protocol):
    """One task of a batch: what its context speaks to, and what was submitted through that."""

    claim: Claim
    follow_ups: list[NewTask] | None


class BatchBody(AnyDefinition):
    """A definition for one run over these members."""

    def __init__(self, definition: AnyDefinition, members: Sequence[Member]) -> None:
        # Not Definition's own beginning: it is the same definition, run in another way.
        self.__dict__.update(definition.__dict__)
        self._one = definition
        self._members = members
        self._ends: list[Outcome | None] = [None] * len(members)

    def start(self, context: Any, payload: bytes) -> Any:
        """Call the handler with the items of all members that can be read."""
        items: list[Any] = []
        readable: list[Member] = []
        for number, member in enumerate(self._members):
            try:
                args, kwargs = self._one.load(member.claim.payload)
            except Exception as error:  # noqa: BLE001 - a user's validator may raise anything
                self._ends[number] = judge(self._one, member.claim.payload, error)
            else:
                items += (*args, *kwargs.values())
                readable.append(member)
        own = _context(context, readable)
        enter_context(own)
        if not items:
            return _nothing() if self.is_async else None
        return self.handler(own, items) if self.wants_context else self.handler(items)

    def dump_result(self, value: Any) -> bytes:
        """Take apart what the handler returned. `PayloadRefused` if it is not one for each."""
        left = [number for number, end in enumerate(self._ends) if end is None]
        if value is None:
            value = [None] * len(left)
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise PayloadRefused("result", f"expected a list or None, got {type(value).__name__}")
        if len(value) != len(left):
            raise PayloadRefused(
                "result",
                f"expected a list of {len(left)} results, one for each item, got {len(value)}",
            )
        for number, result in zip(left, value, strict=True):
            self._ends[number] = self._end_of(self._members[number], result)
        return b"null"

    def ends(self, outcome: Outcome) -> list[Outcome]:
        """How each member ended, now that the run has ended thus."""
        is_well = isinstance(outcome, Succeeded)
        return [
            end if end is not None and (is_well or not isinstance(end, Succeeded)) else outcome
            for end in self._ends
        ]

    def take_ends(self, ends: Sequence[Outcome]) -> None:
        """Another process has run it, and says how its members ended."""
        self._ends = list(ends)

    def timeout_of(self, claim: Claim) -> float | None:
        limits = [self._one.timeout_of(member.claim) for member in self._members]
        return min((limit for limit in limits if limit is not None), default=None)

    def secrets_in(self, payload: bytes) -> frozenset[str]:
        """An error may quote any of them."""
        each = (self._one.secrets_in(member.claim.payload) for member in self._members)
        return frozenset().union(*each)

    def _end_of(self, member: Member, result: object) -> Outcome:
        payload = member.claim.payload
        if isinstance(result, BaseException):
            return judge(self._one, payload, result)
        outcome = accept(self._one, payload, result)
        if not member.follow_ups and not is_body_first(member.claim):
            return outcome
        window = self.home.settings.idempotency_window
        return bringing(outcome, member.follow_ups or (), window)


class BatchRun(Run):
    """The run of a batch in the worker's hands, and the sink of what is said of all members."""

    __slots__ = ("body", "members")

    claim: BatchClaim

    def __init__(
        self,
        claim: BatchClaim,
        definition: AnyDefinition,
        reports: Callable[[Report], None],
        started: float = 0.0,
        grace: float = 0.0,
    ) -> None:
        self.members = [Run(one, definition, None, reports) for one in claim.members]
        self.body = BatchBody(definition, self.members)
        timeout = self.body.timeout_of(claim)
        deadline = None if timeout is None else started + timeout
        super().__init__(claim, self.body, deadline, reports, started, None, grace)

    def context(self) -> Context:
        return _context(super().context(), self.members)

    def report(
        self, *, progress: Progress | None = None, cost: Cost | None = None, log: str | None = None
    ) -> None:
        """Say this of every member; the cost is shared."""
        if self.ended:
            return
        costs = [None] * len(self.members) if cost is None else _shared(cost, len(self.members))
        for member, share in zip(self.members, costs, strict=True):
            member.report(progress=progress, cost=share, log=log)

    def cancel(self, task_ids: Collection[TaskId]) -> None:
        """These members were cancelled: their contexts say so. The run goes on for the others."""
        asked = [one for one in self.members if one.claim.task_id in task_ids]
        for member in asked:
            member.stopping.ask()
        if asked and all(one.stopping.is_asked for one in self.members):
            self.stop(StopReason.CANCELLED)

    def ends(self, outcome: Outcome) -> list[tuple[Claim, Outcome]]:
        """How each member ended, now that the run has ended thus."""
        keep = self.body.home.settings.dead_letter_retention
        ends: list[tuple[Claim, Outcome]] = []
        for one, end in zip(self.members, self.body.ends(outcome), strict=True):
            knows = one.stopping.is_asked and one.stopping.has_seen
            ends.append((one.claim, Stopped() if knows else after_its_body(one.claim, end, keep)))
        return ends

    def close(self) -> None:
        """Nobody listens to its members any more."""
        for member in self.members:
            member.ended = True


def ends_of(run: Run, outcome: Outcome) -> list[tuple[Claim, Outcome]]:
    """The attempts that ended with this run, and how."""
    return run.ends(outcome) if isinstance(run, BatchRun) else [(run.claim, outcome)]


def _context(whole: Context, members: Sequence[Member]) -> BatchContext:
    return BatchContext(whole, [(one.claim, one) for one in members])


async def _nothing() -> None:
    """Not one item could be read: there is nothing to call the handler with."""


def _shared(cost: Cost, number: int) -> list[Cost | None]:
    """What many used, by heads; what does not come out even is the first one's."""
    tokens_in, rest_in = divmod(cost.tokens_in, number)
    tokens_out, rest_out = divmod(cost.tokens_out, number)
    each = Cost(units=cost.units / number, tokens_in=tokens_in, tokens_out=tokens_out)
    first = Cost(units=each.units, tokens_in=tokens_in + rest_in, tokens_out=tokens_out + rest_out)
    return [first, *[each] * (number - 1)]
