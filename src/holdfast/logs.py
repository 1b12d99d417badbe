"""Where the log goes, and what a line of it looks like: text for eyes, or JSON for programs.

Holdfast speaks in named events with fields, through the standard `logging`:

    log = EventLog("holdfast.worker")
    log.warning("task.failed", task_id=claim.task_id, error="ValueError: …")

`docs/reference/log-events.md` lists every one of them, and a test compares the two. To a formatter
that knows nothing of us such a record is one line of text. `set_up` makes standard error the place
for everything, a handler's own lines too, unless the program has set up `logging` itself: then its
handlers, levels and formats stay.

Every record made while a task runs has the attributes `task_id`, `task_name`, `attempt` and
`trace_id`, for whatever formatter asks.

This module stays light: supervisors and heartbeat processes import it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, NamedTuple

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS: Final = ("text", "json")

ABOUT: Final = ("task_id", "task_name", "attempt", "trace_id")
"""What a record about a task has as attributes."""

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message", "asctime", "taskName",
}  # fmt: skip
"""What every record has; all else on it was put there by somebody, and is shown."""

_DRIVERS: Final = ("asyncio", "asyncpg", "concurrent", "httpcore", "httpx", "psycopg", "pymongo")
"""Libraries that at `debug` say more than they are asked, payloads included: `info` is the least
they may say unless their own level was set.
"""

LONGEST_TRACE: Final = 20_000
"""Characters kept of a traceback, from the end: a message may quote what it is about."""

Fields = Mapping[str, Any]
running_task: Callable[[], Fields] = dict
"""The fields of the task that is running right here. Set by `definitions.context`."""


class LogMessage(NamedTuple):
    """An event as the message of a log record; its text is for formatters that know no fields."""

    event: str
    fields: Fields

    def __str__(self) -> str:
        return " ".join([self.event, *_pairs(self.fields)])


class EventLog:
    """Says events by their names."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def says(self, level: int) -> bool:
        """Whether events of that level are heard by anybody."""
        return self._logger.isEnabledFor(level)

    def debug(self, event: str, /, **fields: Any) -> None:
        self._say(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        self._say(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        self._say(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: Any) -> None:
        self._say(logging.ERROR, event, fields)

    def _say(self, level: int, event: str, fields: Fields) -> None:
        if self._logger.isEnabledFor(level):
            named = {name: fields[name] for name in ABOUT if name in fields}
            self._logger.log(level, LogMessage(event, fields), stacklevel=3, extra=named)


def trace_of(error: BaseException) -> str:
    """The traceback with its message, for the key `exception` of an event. As plain text:
    structlog's own ways print the variables of every frame, where payloads and secrets are.
    """
    return "".join(traceback.format_exception(error)).rstrip()[-LONGEST_TRACE:]


class JsonLines(logging.Formatter):
    """Each record as one JSON object on a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = read_record(record)
        line = {
            "timestamp": _instant(record),
            "level": record.levelname.lower(),
            "event": event,
            "logger": record.name,
            **fields,
        }
        try:
            return json.dumps(line, default=_shown)
        except (TypeError, ValueError):  # keys that are no text, or a circle
            return json.dumps({str(key): _shown(value) for key, value in line.items()})


class TextLines(logging.Formatter):
    """Each record as a line for eyes; what has lines of its own follows, indented."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = read_record(record)
        below = [str(fields.pop(name)) for name in ("exception", "stack") if name in fields]
        if not record.name.startswith("holdfast"):
            fields["logger"] = record.name
        words = [_instant(record), f"{record.levelname.lower():<7}", event, *_pairs(fields)]
        text = "\n".join([" ".join(words), *below])
        return "\n    ".join(_printable(line) for line in text.splitlines())


class Stderr(logging.Handler):
    """Writes to standard error, looked up at each use for those who replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - as every handler: the log must not break the program
            self.handleError(record)


def read_record(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """A record's event and fields, whoever made it."""
    message = record.msg
    if isinstance(message, LogMessage):
        event, fields = message.event, dict(message.fields)
    else:
        event, fields = record.getMessage(), {}
    for name, value in record.__dict__.items():
        if name not in _STANDARD:
            # The task's own words must be found under their names; another's are kept beside.
            if name in fields and fields[name] != value:
                fields[f"{name}_"] = fields[name]
            fields[name] = value
    if record.exc_info and record.exc_info[1] is not None:
        fields["exception"] = trace_of(record.exc_info[1])
    elif record.exc_text:
        fields["exception"] = record.exc_text[-LONGEST_TRACE:]
    if record.stack_info:
        fields["stack"] = record.stack_info
    return event, fields


def take_over(name: str, told: Callable[[logging.LogRecord], bool]) -> None:
    """What a library's logger of this name would say is `told` first, and said if that says so."""
    logging.getLogger(name).addFilter(told)


def set_up(level: str = "info", form: str = "text", *, runs_handlers: bool = True) -> None:
    """Make standard error the place for the log, from `level` up; JSON if `form` says so.

    A program that has set up `logging` itself keeps its handlers; only where `json` was asked for
    do those that write to standard error or output write JSON from now on. Where handlers run,
    structlog says its lines through `logging`, unless the program has configured it.
    """
    root, least = logging.getLogger(), LEVELS[level]
    formatter = JsonLines() if form == "json" else TextLines()
    if not root.handlers:
        root.addHandler(Stderr())
    for handler in root.handlers:
        if isinstance(handler, Stderr):
            handler.setFormatter(formatter)
            root.setLevel(least)
        elif form == "json" and _is_standard(getattr(handler, "stream", None)):
            handler.setFormatter(formatter)
    if form == "json":
        _tell_crashes()
    ours = logging.getLogger("holdfast")
    if ours.level in {logging.NOTSET, LEVELS[_chosen["level"]]}:
        ours.setLevel(least)
    for name in _DRIVERS:
        driver = logging.getLogger(name)
        if driver.level == logging.NOTSET:
            driver.setLevel(max(least, logging.INFO))
    if runs_handlers:
        _mark_records()
        _route_structlog(least)
    _chosen.update(level=level, form=form)


def before_user_code(form: str | None) -> None:
    """The program's own set-up comes with its modules, and ours after it: with `json`, let what is
    said meanwhile be JSON too.
    """
    if form == "json":
        if logging.lastResort is not None:
            logging.lastResort.setFormatter(JsonLines())
        _tell_crashes()


_chosen = {"level": "info", "form": "text"}


def environment() -> dict[str, str]:
    """The environment for a process that we start, so that it logs as this one does."""
    chosen = {"HOLDFAST_LOG_LEVEL": _chosen["level"], "HOLDFAST_LOG_FORMAT": _chosen["form"]}
    return {**os.environ, **chosen}


def inherit(*, runs_handlers: bool) -> None:
    """Set up the log as the process that started this one said."""
    level = os.environ.get("HOLDFAST_LOG_LEVEL", "info")
    form = os.environ.get("HOLDFAST_LOG_FORMAT", "text")
    set_up(level, form, runs_handlers=runs_handlers)


def _mark_records() -> None:
    """Give every record the running task's fields, whoever formats it.

    Not by a record factory: `logging` refuses an `extra` that has a name which the factory gave.
    """
    make = logging.Logger.makeRecord
    if getattr(make, "marks_tasks", False):
        return

    def marked(self: logging.Logger, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(self, *args, **kwargs)
        if fields := running_task():
            _mark(record, fields)
        return record

    marked.marks_tasks = True  # type: ignore[attr-defined]  # seen by the next caller
    logging.Logger.makeRecord = marked  # type: ignore[method-assign]  # there is no other place


def _mark(record: logging.LogRecord, fields: Fields) -> None:
    """An event of ours may be about another task, and says so. Of what others say, the running
    task's own words must be found under their names; theirs are kept beside.
    """
    is_ours = record.name.startswith("holdfast.")
    for name, value in fields.items():
        said = record.__dict__.setdefault(name, value)
        if said != value and not is_ours:
            record.__dict__ |= {name: value, f"{name}_": said}


def _route_structlog(least: int) -> None:
    import structlog  # noqa: PLC0415 - large, and only where handlers run

    if structlog.is_configured():
        return
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _as_record],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(least),
    )


def _as_record(_logger: Any, _method: str, fields: Any) -> tuple[tuple[LogMessage], dict[str, Any]]:
    passed = {name: fields.pop(name) for name in ("exc_info", "stack_info") if name in fields}
    return (LogMessage(str(fields.pop("event", "")), fields),), passed


def _tell_crashes() -> None:
    """An exception that nobody catches is an event like any other."""
    log = EventLog("holdfast")

    def crashed(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.error("process.crashed", pid=os.getpid(), exception=trace_of(error))

    def thread_crashed(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            thread = None if args.thread is None else args.thread.name
            log.error("thread.crashed", thread=thread, exception=trace_of(args.exc_value))

    sys.excepthook, threading.excepthook = crashed, thread_crashed
    logging.captureWarnings(capture=True)


def _is_standard(stream: object) -> bool:
    return any(stream is one for one in (sys.stderr, sys.stdout, sys.__stderr__, sys.__stdout__))


def _instant(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _pairs(fields: Fields) -> Iterable[str]:
    return (f"{name}={_word(value)}" for name, value in fields.items() if value is not None)


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=_shown)
    is_plain = text.isprintable() and " " not in text and '"' not in text and text != ""
    return text if is_plain or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - somebody else's __str__
        return f"<{type(value).__name__}>"


def _printable(line: str) -> str:
    """Terminals obey control characters; a log line must not command one."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line)
