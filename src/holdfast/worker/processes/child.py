"""`python -m holdfast.worker.processes.child <app> <fd> <parent>`: a process of a worker's pool.

A fresh interpreter, not a fork of the worker: a fork of a process with threads and open databases
inherits locks that nobody will release. It imports the app once, then runs attempts one by one
until the worker closes the line or is gone.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from holdfast import logs
from holdfast.core.lifecycle import Failed, Outcome
from holdfast.tracing import spans_for
from holdfast.worker.batch_claim import BatchClaim
from holdfast.worker.discovery import INCLUDE, import_all
from holdfast.worker.liveness import die_with_parent
from holdfast.worker.loading import LoadedApp, load_app
from holdfast.worker.processes.body import Body
from holdfast.worker.processes.channel import Channel
from holdfast.worker.processes.interruption import Interruption
from holdfast.worker.processes.steps import ChildSteps
from holdfast.worker.processes.transactions import ChildTransactionHost
from holdfast.worker.processes.wire import (
    READY,
    REFUSED,
    RUN,
    Frame,
    pack_ends,
    pack_outcome,
    unpack_claim,
)
from holdfast.worker.verdict import describe, unknown


def main(spec: str, fd: int, parent: int) -> None:
    """Serve the worker at the other end of `fd`."""
    die_with_parent(parent)
    interruption = Interruption()
    interruption.install()
    channel = Channel(fd, interruption)
    hello = channel.receive()
    if hello is None:
        return
    sys.path[:] = hello.head["sys_path"]
    logs.before_user_code(os.environ.get("HOLDFAST_LOG_FORMAT"))
    try:
        app = load_app(spec)
        import_all(hello.head["include"], INCLUDE)
    except BaseException as error:  # noqa: BLE001 - the user's module may raise anything
        channel.send(pack_outcome(Failed(describe(error)), None)._replace(kind=REFUSED))
        return
    logs.inherit(runs_handlers=True)
    if (spans := spans_for(app.settings)) is not None:
        spans.enter()
    channel.send(Frame(READY, None))
    _serve(app, channel, interruption)


def _serve(app: LoadedApp, channel: Channel, interruption: Interruption) -> None:
    body = Body(
        channel,
        interruption,
        ChildTransactionHost(app, channel, interruption),
        ChildSteps(channel, app.settings.max_result),
    )
    while (frame := channel.receive()) is not None and frame.kind == RUN:
        claim = unpack_claim(frame)
        channel.turn_to(frame.about)
        definition = app.registry.get(claim.name)
        outcome: Outcome
        if definition is None:
            outcome = unknown(claim.name, app.registry.suggest(claim.name))
            answer = pack_outcome(outcome, frame.about)
        elif isinstance(claim, BatchClaim):
            ends = body.run_batch(claim, definition, frame.head["memory_limit"])
            answer = pack_ends(ends, frame.about)
        else:
            outcome = body.run(claim, definition, frame.head["memory_limit"])
            answer = pack_outcome(outcome, frame.about)
        channel.send(answer)
        channel.turn_to(None)


if __name__ == "__main__":
    # The worker may be gone while we speak. Threads that a handler left behind hold up this
    # process's end until the worker, or the kernel after the worker's end, kills it.
    with suppress(ConnectionError):
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
