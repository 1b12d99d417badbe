"""Workers in any language, over a protocol of five requests: register, poll, result, heartbeat,
drain. No HTTP in here: `server/routes/workers_http.py` speaks it, this decides.

The same guarantees as for workers in Python. A claim is leased to the worker's row in the store;
its beats keep it, and the rescuer that buries silent workers buries these too. A result carries the
attempt as its fence and is a conditional write; whatever comes too late changes nothing.

Any number of server processes may serve one worker, in turn. What a process remembers (who
registered, what was handed out) saves reads; all of it can be read again from the store.

**What only a worker in another process of its own can suffer.** An answer may be lost on its way:
the store has started tasks that the worker never heard of, and as the worker lives, nobody rescues
them. So a heartbeat may say what the worker runs (`running`), and what was handed out and is
missing there is handed back. And nobody here can stop a body: an attempt that outlives its timeout
is settled by the `TimeoutEnforcer`, and what its worker sends later is refused.
"""

from holdfast.remote.values import (
    UNSAID,
    EventWait,
    Heartbeat,
    Registration,
    RemoteResult,
    RemoteStep,
    ResultStatus,
    Sleep,
    TakenResult,
    Verdict,
)
from holdfast.remote.workers import RemoteWorkers

__all__ = [
    "UNSAID",
    "EventWait",
    "Heartbeat",
    "Registration",
    "RemoteResult",
    "RemoteStep",
    "RemoteWorkers",
    "ResultStatus",
    "Sleep",
    "TakenResult",
    "Verdict",
]
