"""An app whose first delivery kills its process after it was sent and before that is recorded."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from holdfast import Holdfast
from holdfast.core.retry import exponential
from holdfast.delivery import delivering
from holdfast.delivery.delivering import DeliveryRunner, Wanted

app = Holdfast(
    lease="2s",
    heartbeat="500ms",
    sweep="200ms",
    poll="100ms",
    callback_hosts="127.0.0.1",
    callback_secret="a secret of some length",
)
delivering.RETRY = exponential(0.1, 1)  # type: ignore[misc] # the test does not wait for real ones
run = DeliveryRunner.run


async def run_and_die(self: DeliveryRunner, delivery_id: str, wanted: Wanted) -> str:
    """Die once, at the worst moment."""
    said = await run(self, delivery_id, wanted)
    die_once()
    return said


def die_once() -> None:
    mark = Path(os.environ["POST_OFFICE_MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


DeliveryRunner.run = run_and_die  # type: ignore[method-assign] # that is the point


@app.task(name="write", max_retries=0)
async def write(text: str) -> dict[str, str]:
    return {"content": text}
