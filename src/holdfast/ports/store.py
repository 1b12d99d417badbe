"""What a store must promise. Stores keep and compare; `core` decides.

Protocols by noun (tasks, workers, transactions, schema; records and journal in a file of their
own) and `Store`, which is all of them. `stores/memory` is the shortest correct reading;
`holdfast.testing` holds the suites that every store passes.

**Rules that hold for every method**

- Each call is atomic and durable when it returns: on disk, or not done at all. An unknown outcome
  is retried with the same arguments; that is safe, as said at each method.
- "Now" is the store's clock. Callers send durations.
- Methods may be called from any thread's event loop, concurrently. A store is opened once per
  process and must not be carried over a fork.
- Driver errors never leak: `StoreUnavailable` means "not written, try again", anything else is a
  bug.
- Where a task is (its *place*): **waiting** (run_at in the future), **ready**, **blocked** (its
  gate is closed), **running**, **done**. Every task is in exactly one. Ready shows as `queued`
  whatever the task was before, waiting as `queued` or (after a failed attempt) `retrying`. The
  passing of time alone moves nothing: what is due or expired moves at the next claim, whoever
  claims from whatever queue, and readers see it where it is until then.
- "Oldest first" and "newest first" of tasks mean by id. A `limit` counts what was changed or
  returned, not what was looked at; 0 changes and returns nothing. Text that is no task id names no
  task.
- A duration becomes whole microseconds, rounded to the nearest.

**Gates** (`core.gate`, `core.passing`). A task that becomes eligible (submitted without delay, due,
handed back) stands before the first of its gates that is closed, **blocked**, and is ready once it
has passed them all. It holds those behind it until it leaves ready or running or the line of a
later gate, for any reason (settled, cancelled, expired, handed back); in the same step the first by
(rank, id) of those who stand there pass, as many as there is room for (at most `passing.SLICE`; an
open gate's rest passes with the next claims), each on to its next gate or to ready. A call is one
step: of a batch all leave and come before anybody passes (a claim first ends what has expired). A
holder holds though its queue is paused or no worker has its capabilities. A gate that nobody holds,
stands before or has set the capacity of leaves nothing behind, but for a latch that was opened
(kept as long as ended tasks are) and the starts of a rate's last period.

- *lock*: one holder. If it is ready, has not started, has no gate after the lock, and has a larger
  (rank, id) than one who comes, they change places: the order is by rank, not by arrival. Each
  claim of a locked task gets a `fence` larger than any given before in this store.
- *limit*, *share*, *breaker*: no more than its capacity hold it.
- *rate*: those who passed and have not started, plus the starts of the last period, are no more
  than its capacity. The claim counts the start.
- *latch*: closed until it was counted down as often as up (`Changes.counts`, `NewTask.counts`).
  Each unfinished task has one of its own, whose key is its id, and which its end counts down.
  Unknown ones are open. It opens once, and what is counted later changes nothing, but for this: a
  requeued task's own latch is closed until it ends again, and those that it names count it again
  (they are made or closed if need be, and forget that it did not go well); and a settlement that
  counts up the latch that its task is to stand `behind` closes it.

A capacity is the one that the newest submit named, or the one set by `Changes.capacities`.

Who opens a store may set `passed_on`: once what let tasks pass their last gate is on disk (`save`,
`cancel`, `commit`, `Transaction.complete`), it is told the queues in which they are ready now, and
how many in each: `EVERYBODY` as soon as one of them requires capabilities, as whoever sleeps
longest may lack them. New tasks of the same commit are left out. It is called in the caller's
thread, from its event loop, and is a hint: a repeat may tell twice or not at all.

**Order.** `rank` is written when a task first becomes known as eligible at an instant: run_at, or
now. Retries keep their rank. Requeueing by an operator gives a fresh one. Claims go by (rank, id).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from holdfast.core.attempt import Claim, Claimed, History, Refusal, Report, Settlement
from holdfast.core.fleet import Requests, WorkerInfo, WorkerStatus
from holdfast.core.gate import GateState
from holdfast.core.query import Order, Page, TaskFilter
from holdfast.core.stats import Standing, Stats
from holdfast.core.task import Added, NewTask, Priority, Reason, Task, TaskId, WorkerId
from holdfast.ports.records import JournalStore, RecordStore


class TaskStore(Protocol):
    """Keeps tasks, their attempts and what happened to them."""

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        """Store new tasks, all or none, and answer for each in the same order.

        A task whose (name, unique_key) belongs to an unfinished task is not created; the answer
        names that one. Likewise an `idempotency_key` seen within the last `idempotency_window`
        seconds, as long as the `fingerprint` is equal; otherwise `IdempotencyConflict` is raised
        and nothing of the batch is written. The idempotency key is looked at first. Both hold
        inside one batch too, and however many callers race. The window runs from the submit that
        created the task; repeats do not prolong it, the task's end does not shorten it. An id that
        exists already answers as created, whatever its keys (a repeat after an unknown outcome).
        `Added.state` is the state after the whole batch.

        `run_at` wins over `delay`, `expires_at` over `expires_in`. Work whose `run_at` is past is
        ready with `run_at` as its eligible instant. A new task's history begins with `submitted`.
        """
        ...

    async def get(self, task_id: TaskId) -> Task | None:
        """The whole picture of one task."""
        ...

    async def list(
        self,
        where: TaskFilter,
        *,
        limit: int,
        after: str | None = None,
        order: Order = Order.NEWEST,
    ) -> Page:
        """Matching tasks in this order, `limit` at most, after the cursor of the page before.
        Tasks that ended at the same instant are in the order of their ids.

        `Page.next` is None as soon as nothing more matches: no empty last page. Tasks added or
        forgotten between two pages neither repeat nor hide others. `InvalidOption` for what is no
        cursor, and for a cursor of another order.
        """
        ...

    async def count(self, where: TaskFilter, *, limit: int) -> int:
        """How many tasks match, counting no further than `limit`."""
        ...

    async def history(self, task_id: TaskId) -> History | None:
        """Every attempt (the running one too) and every event of a task, each oldest first."""
        ...

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        """Start up to `limit` ready tasks, smallest (rank, id) first, and lease them to the worker.

        First, what is due (`run_at` <= now) becomes ready, and what is not running and has expired
        (`expires_at` <= now) is cancelled with reason and event `expired`: an expired task is
        never started, a retry neither. `queues` None means all, an empty collection none. Tasks of
        paused queues, with capabilities the worker lacks, or with a taken lock are passed over
        without cost to the rest. Two callers never get the same task, however they race. The
        attempt number grows in the same step, so a crash always shows. A worker that is not
        registered, stopped, or was buried, gets `WorkerGone`. `next_due` looks only at tasks this
        worker could take; it may be earlier than the truth, never later. `ranks` tells those of the
        claims. After an unknown outcome the caller lists what it runs, and hands back what it does
        not know.
        """
        ...

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        """Write how attempts ended, the whole batch in one commit, and say which came too late.

        Each is written only if its task is running this attempt for this worker, together with the
        history and the release of its lock. Result, error and reason of the task become those of
        the settlement. Repeating a settlement that was saved (same attempt, worker and `ended`) is
        silently accepted, also when the task has moved on since. One that no longer holds the lease
        changes nothing but leaves a `late_result_refused` event on its task and is counted in
        `Stats.refused`. A settlement that would start the task again, on a task with a cancel
        request, is written as `lifecycle.cancelled_instead` has it. Unknown tasks are refused and
        counted, without an event. A non-terminal settlement makes the task eligible at now + delay,
        with its old rank: in the future it waits in the state given, otherwise it is ready (or
        blocked) at once; what it `needs` it requires from then on, and the latch that it is
        `behind` is one of its gates, for good.

        What a settlement brings along (`also`) is written as `commit` would, if and only if it is
        itself, and right after it: the keys that its task lets go are free. Only its latches are
        counted up before, so one that the task stands `behind` is closed. If that clashes,
        neither is, the answer says so (`Refusal.conflict`), and nothing is noted or counted: the
        attempt goes on to hold its lease.
        """
        ...

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        """Store progress (replaces), cost (adds), log lines (events) and steps (the journal) of
        running attempts, fenced alike.

        A stale report is refused and counted but leaves no event: the history tells of lost
        results, not of lost progress bars. What a report leaves out (None, no lines) stays. Cost
        adds up over attempts, so a repeat after an unknown outcome may count it twice.
        """
        ...

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        """End what is not running, as `lifecycle.ended_idle_as` has it (event: the reason's name);
        ask running tasks to stop (flag and event `cancel_requested`), oldest first. Returns the
        tasks changed, as they are now. Terminal tasks are left alone and not returned, nor are
        those already asked.
        """
        ...

    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        """Start tasks again on an operator's word: ended ones, and those that wait for their time;
        others are passed over.

        A terminal task gets a fresh rank (`head_starts` by priority), `charged` and `crash_count`
        0, cause `operator`, no result, error, reason, progress, finish or cancel request; its
        attempts stay in the history and a `requeued` event is added; its expiry is dropped. One
        that waits, queued or retrying, becomes eligible now and stands in line as from now, unless
        its own rank is smaller; nothing else changes. With `pace` (tasks per second) the
        n-th, oldest first and counted from 1, becomes eligible n / pace seconds from now. A task
        whose (name, unique_key) is taken by another unfinished task is passed over, also when this
        very call requeued the other. Returns the tasks changed, oldest first, as they are now.
        """
        ...

    async def discard(self, where: TaskFilter, *, limit: int) -> int:
        """Forget terminal tasks, oldest first, history, idempotency key and all; returns how many.
        Others are left alone.
        """
        ...

    async def prune(self, *, retention: float, dead_letter_retention: float, limit: int) -> int:
        """Forget terminal tasks that finished longer ago than that (seconds), at most `limit`.

        `dead_letter` has its own time. A forgotten task's history and idempotency key go with it
        (so a `retention` below the idempotency window shortens that window). Used-up idempotency
        keys, and workers that stopped or died and last beat longer ago than `retention`, go along.
        Returns how many tasks went; less than `limit` means done.
        """
        ...

    async def standing(self, task_id: TaskId) -> Standing | None:
        """The facts for "why is it not running", at one instant. Counts at most
        `Standing.ahead_cap` ahead.
        """
        ...

    async def count_ready(
        self, *, queue: str | None, priority: Priority, rank: int, limit: int
    ) -> int:
        """How many ready tasks of this priority have a rank up to this, in one queue or in all:
        those that waiting has made more urgent. Counts no further than `limit`.
        """
        ...

    async def gates(
        self, *, names: Collection[str] | None = None, after: str = "", limit: int
    ) -> Sequence[GateState]:
        """The gates there are, or those of these names, by name and after that one, `limit` at
        most.
        """
        ...

    async def demand(self) -> Mapping[frozenset[str], int]:
        """How many tasks are ready, or wait for their time, by the capabilities that they require;
        those that require none are left out. Does not walk the backlog.
        """
        ...

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    async def stats(self) -> Stats:
        """The store in numbers, without walking the backlog. A queue is listed if it is paused or
        has unfinished tasks; whether an idle one is, is the store's choice.
        """
        ...


class WorkerStore(Protocol):
    """Keeps the workers: who is alive, and whose tasks are orphaned.

    A worker is alive while its `beats` grow. Nobody compares clocks: a rescuer that saw the same
    number for `lease` seconds of its own monotonic time buries the worker, and the store refuses if
    it has beaten since.
    """

    async def register(self, worker: WorkerInfo) -> None:
        """Add a worker, alive, with `started_at` and `beat_at` now. Its id was never used before; a
        repeat (after an unknown outcome) changes nothing.
        """
        ...

    async def beat(
        self,
        worker_id: WorkerId,
        *,
        load: int | None = None,
        status: WorkerStatus | None = None,
        blocked_by: str | None = None,
    ) -> bool:
        """Say the worker is alive: `beats` grows by one, `beat_at` is now, `load`, `status` and
        `blocked_by` (empty: by no task) change if given. `stopped` is its last word: it has left
        in good order. False if it is unknown, stopped or buried: nothing changes, it must register
        anew.
        """
        ...

    async def workers(self) -> Sequence[WorkerInfo]:
        """All workers known, newest first; stopped and dead ones until they are pruned."""
        ...

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        """Declare a worker dead if its `beats` are still this number (None: whatever they are).

        True if it is dead now by this call; False if it is unknown, was dead or stopped already, or
        has beaten since. From then on it can neither claim nor beat. What it settles is still taken
        as long as nobody else was given the task.
        """
        ...

    async def ask_to_drain(self, worker_id: WorkerId) -> bool:
        """Ask a worker to finish what it has and leave. Nothing else changes: the worker sees to
        it. False if it is unknown, stopped or dead.
        """
        ...

    async def requests(self, worker_id: WorkerId) -> Requests:
        """What is asked of this worker: by `cancel` of the tasks that it runs, by `ask_to_drain` of
        itself; nothing of unknown ones. Asked about once a second: must be cheap.
        """
        ...

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        """Running tasks whose worker is dead, stopped or unknown, for the rescuer to settle as
        `WorkerLost`: the claims as they were handed out, but with `cancel_requested` as it is now.
        Changes nothing; a task stays an orphan until it is settled.
        """
        ...


class Transaction(Protocol):
    """An open transaction of the store's database, for one attempt: its handler's own writes, and
    in the end its completion, in one commit.
    """

    @property
    def connection(self) -> object:
        """What the handler writes with. It neither commits nor rolls back by itself."""
        ...

    async def complete(self, settlement: Settlement, report: Report | None = None) -> None:
        """Store what the attempt said last and how it ended, fenced like `report` and `save`, and
        commit together with everything written through `connection`.

        `LeaseLost`: the attempt is no longer this worker's, and all was rolled back (nothing is
        noted or counted: the refusal of the attempt's ordinary settlement will be).
        `StoreUnavailable`: no answer came; ask `committed`, never guess. Called at most once.
        """
        ...

    async def committed(self) -> bool:
        """After `complete` was left without an answer: whether it was committed. Found out by
        looking; a commit that may still be under way is waited for. `StoreUnavailable`: ask again.
        """
        ...


class TransactionStore(Protocol):
    """Lets tasks take part in somebody's transaction. For stores with the ability `transactions`;
    others raise `Unsupported`.
    """

    def transaction(
        self, claim: Claim, *, blocking: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        """A transaction for the attempt's handler. Left without `complete`, or by an exception, it
        is rolled back.

        `blocking`: its `connection` is for sync code, in a thread of the caller's choice; a store
        that has no such connection raises `Unsupported`. Entering raises `LeaseLost` for an attempt
        that is no longer the worker's. A worker that falls silent inside must not keep others from
        rescuing its task for long, unless all writers wait for each other anyway (`one_writer`).
        """
        ...

    def add_within(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        """`TaskStore.add` inside the transaction that is open on the caller's own connection to
        this database, in the calling thread: visible when the caller commits, gone if not.

        `InvalidOption` for a connection that is unknown, asynchronous, or leads elsewhere.
        """
        ...

    async def add_within_async(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        """The same for an asynchronous connection."""
        ...


class SchemaStore(Protocol):
    """Keeps its own shape up to date."""

    async def schema_version(self) -> int:
        """The version found; 0 for an empty store."""
        ...

    async def migrate(self) -> Sequence[int]:
        """Bring the schema to this release's version; returns the versions applied."""
        ...

    async def check(self) -> Sequence[str]:
        """Look for anything that should not be (`doctor`): broken invariants, risky settings. Empty
        is well. A sentence that is a `core.trouble.Trouble` brings its code and its fix.
        """
        ...


class Store(
    TaskStore,
    WorkerStore,
    RecordStore,
    JournalStore,
    TransactionStore,
    SchemaStore,
    Protocol,
):
    """The truth. Open it with `async with`."""

    passed_on: Callable[[Mapping[str, int]], None]

    @property
    def url(self) -> str:
        """Where it is, without secrets."""
        ...

    @property
    def abilities(self) -> frozenset[str]:
        """What this store can do that not all can: `many_processes`, `durable`, `transactions`; and
        `one_writer`: a transaction keeps every other writer waiting.
        """
        ...

    async def open(self) -> None:
        """Connect and check the schema; an empty store is set up. `SchemaMismatch` if versions
        differ.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go. Idempotent."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
