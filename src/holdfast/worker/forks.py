"""Forks of a handler. A copy of a worker, or of a process of its pool, must not go on serving.

A handler may fork, and many do without knowing it. The fork is a copy of all that the worker has:
its connections, its event loop, the line to its parent. As long as it stays inside the handler it
is the handler's own business; once it comes out, by an `exec` that failed or an innocent `return`,
it would go on as a second worker with the first one's hands. So it ends right there.
"""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from typing import NoReturn


class _This:
    is_fork = False


def _forked() -> None:
    _This.is_fork = True


os.register_at_fork(after_in_child=_forked)


def serve_here() -> None:
    """This process runs handlers by its own will, even if it was forked from one that does."""
    _This.is_fork = False


def end_if_fork(error: BaseException | None = None) -> None:
    """Call where a body comes out: returned, suspended, or with this error."""
    if _This.is_fork:
        end_fork(error)


def end_fork(error: BaseException | None = None) -> NoReturn:
    """End this process with the status that a program of its own would have ended with.

    Nothing is flushed and no exit handler is run: buffers and handlers are the original's.
    """
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        os._exit((error.code or 0) & 0xFF)
    if error is not None:
        with suppress(BaseException):
            os.write(2, "".join(traceback.format_exception(error)).encode(errors="replace"))
    os._exit(0 if error is None else 1)
