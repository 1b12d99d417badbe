"""Write the parts of the docs that the code already says.

    python scripts/reference.py            rewrite them
    python scripts/reference.py --check    exit 1 and name the pages that are out of date

A page marks such a part with `<!-- generated: NAME -->` and `<!-- end generated -->`; everything
outside the marks is written by people and kept.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer.main

import holdfast
from holdfast import errors
from holdfast.cli.main import app as cli
from holdfast.core.alerts import RULES
from holdfast.core.lifecycle import MOVES, OTHER_WORDS, TERMINAL
from holdfast.core.metrics import METRICS
from holdfast.core.other_words import ADVICE, SAME
from holdfast.core.priority import NUMBERS
from holdfast.core.task import AttemptEnd, Cause, Priority, Reason, State
from holdfast.definitions.options import BatchKeywords, SubmitKeywords
from holdfast.definitions.submittable import Submittable
from holdfast.http.client import ServerSchedules
from holdfast.server.access import TABLE
from holdfast.server.app import create_app
from holdfast.server.problems import KINDS
from holdfast.settings import OTHER_NAMES, Settings

DOCS = Path(__file__).resolve().parent.parent / "docs"
PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        fresh = PART.sub(lambda part: f"{part[1]}\n{PARTS[part['name']]()}\n\n{part[3]}", text)
        if fresh != text:
            stale.append(page.name)
            if "--check" not in arguments:
                page.write_text(fresh)
    if "--check" in arguments and stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run `make docs`\n")
        return 1
    return 0


# -- states ------------------------------------------------------------------------------------


def states_picture() -> str:
    """The map of `core.lifecycle.MOVES` as a Mermaid diagram."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> queued: submit"]
    for state, moves in MOVES.items():
        lines += [f"    {state} --> {to}: {why.replace(':', '')}" for to, why in moves.items()]
    lines += [f"    {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join([*lines, "```"])


def states_table() -> str:
    rows = [
        (f"`{state}`", f"`{to}`", why)
        for state, moves in MOVES.items()
        for to, why in moves.items()
    ]
    return table(("from", "to", "because"), rows)


def words() -> str:
    kinds = (
        ("state of a task", State),
        ("end of an attempt", AttemptEnd),
        ("cause of an attempt", Cause),
        ("reason of an ending", Reason),
    )
    rows = [(what, ", ".join(f"`{word}`" for word in kind)) for what, kind in kinds]
    return table(("word for the", "one of"), rows)


def other_words() -> str:
    rows = [(f"`{theirs}`", f"`{ours}`") for theirs, ours in OTHER_WORDS.items()]
    return table(("elsewhere", "here"), rows)


def priority_numbers() -> str:
    rows = [
        (", ".join(str(n) for n, word in NUMBERS.items() if word is priority), f"`{priority}`")
        for priority in reversed(Priority)
    ]
    return table(("number", "here"), rows)


def same_words() -> str:
    rows = [(f"`{theirs}`", f"`{ours}`") for theirs, ours in SAME.items()]
    return table(("elsewhere", "here"), rows)


def advice() -> str:
    return table(("elsewhere", "here"), [(f"`{word}`", text) for word, text in ADVICE.items()])


# -- errors ------------------------------------------------------------------------------------


def error_table() -> str:
    rows = [
        (f"{'&nbsp;' * 4 * depth}`{kind.__name__}`", also(kind), first_sentences(kind))
        for kind, depth in tree(errors.HoldfastError)
    ]
    return table(("error", "also a", "what it means"), rows)


def tree(root: type[Exception], depth: int = 0) -> Iterator[tuple[type[Exception], int]]:
    yield root, depth
    # In the order of the module, which is the order of its docstring's picture.
    for kind in vars(errors).values():
        if isinstance(kind, type) and root in kind.__bases__:
            yield from tree(kind, depth + 1)


def also(kind: type[Exception]) -> str:
    builtin = [base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"]
    return ", ".join(f"`{name}`" for name in builtin if name != "Exception")


# -- the REST API ------------------------------------------------------------------------------


def rest_routes() -> str:
    """Every route with its scope, from the table that guards them."""
    page = create_app(holdfast.Holdfast(url="memory://")).openapi()
    rows = [
        (
            f"`{method} {path}`",
            str(rule) if rule else "none",
            page["paths"][path][method.lower()]["summary"] if path in page["paths"] else THE_PAGE,
        )
        for path, methods in TABLE.items()
        for method, rule in methods.items()
    ]
    return table(("route", "scope", "what it does"), rows)


def rest_problems() -> str:
    """The codes that errors of ours have."""
    rows = sorted((f"`{kind.code}`", str(kind.status), f"`{error.__name__}`")
                  for error, kind in KINDS.items())  # fmt: skip
    return table(("code", "status", "error"), rows)


THE_PAGE = "This API as OpenAPI, with the app's tasks and their parameters"

# -- settings ----------------------------------------------------------------------------------


MEANINGS = {
    "url": "the store: `sqlite:///path`, `postgresql://…`, `mongodb://…`; `memory://` for tests",
    "redis_url": "wake-ups through Redis: `redis://…`, `redis+sentinel://…`, `redis+cluster://…`",
    "lease": "a worker silent for this long is lost, and its tasks start elsewhere",
    "heartbeat": "how often a worker says that it is alive",
    "sweep": "how often a worker looks for lost workers and old history",
    "poll": "how often an idle worker looks for work that nobody woke it for",
    "retry_base": "wait after the first failed attempt",
    "retry_multiplier": "how much longer each further wait is",
    "retry_cap": "no wait is longer",
    "retry_delay": "wait after every failed attempt, exactly; replaces the three before it",
    "retry_jitter": "whether waits are drawn from 0 up to their length; the curve's are",
    "retry": "the whole backoff: `exponential(5s, 2, cap=1h)`, `fixed(10m)`; replaces those above",
    "aging_low": "waiting time that makes `low` as urgent as `normal`",
    "aging_normal": "further waiting time that makes `normal` as urgent as `high`",
    "max_retries": "attempts after the first: one number, `unlimited`, or some by priority",
    "timeout": "limit on one attempt: one duration, `none`, or some by priority",
    "crash_limit": "worker deaths after which a task is a dead letter",
    "unknown_task_grace": "how long a task is kept that no worker's code is fit for",
    "drain": "time that running tasks get after SIGTERM",
    "stop_grace": "time that a body which looks at `ctx.stop_requested` gets to end by itself",
    "max_payload": "largest arguments of a task, as JSON",
    "max_result": "largest result, as JSON",
    "retention": "how long finished tasks are kept",
    "dead_letter_retention": "how long dead letters are kept",
    "idempotency_window": "how long an idempotency key is remembered",
    "worker_name": "how the ids of this worker's processes begin; its host's name unless given",
    "queues": "what a worker serves (`-q`); `*` for every queue",
    "concurrency": "tasks at a time per worker process (`-c`)",
    "processes": "worker processes (`--processes`)",
    "include": "modules with tasks, imported by workers and servers (`--include` adds more)",
    "capabilities": "what a worker can do (`--capability`)",
    "open_queues": "queues that take task types this process does not define, for HTTP workers",
    "schedule_floor": "a schedule whose runs are closer together is refused",
    "agent": "the task that the assistant gives what people ask for; else the first `@app.agent`",
    "max_body": "largest request body the server reads; a stream of lines may be longer",
    "max_connections": "clients connected to one server at once; then idle ones make way",
    "rate_limit": "requests a second per token, then 429; `0` for no limit",
    "request_timeout": "time a client gets to send a request",
    "callback_hosts": "hosts (or `host:port`) that callbacks may reach though they are not public, "
    "or their port is neither 80 nor 443",
    "callback_previous_secret": "signs callbacks too, while receivers learn the new secret",
    "callback_secret": "signs callbacks",
    "timer_url": "who calls the server at a given time, where no process is always there: "
    "`gcloud://project/location/queue?target=https://…/v1/tasks/execute`",
    "timer_previous_secret": "holds too for the calls of timers, while those signed by it wait",
    "timer_secret": "signs the calls of timers",
    "llm_url": "base URL of an OpenAI-compatible endpoint that [reads requests beside the grammar]"
    "(../how-to/use-a-language-model.md); without it no model is asked",
    "llm_key": "the key of that endpoint, sent as a bearer token",
    "llm_model": "the model to ask there",
    "llm_timeout": "longest time that the model may take for one request, repeats included",
    "smtp_url": "the mail server: `smtp://user:pass@host:587` (STARTTLS; `?starttls=no` for none), "
    "or `smtps://…`",
    "mail_from": "the sender's address of e-mails",
    "public_url": "where people reach the server: for links to unsubscribe",
    "delivery_secret": "signs the links to unsubscribe",
    "delivery_templates": "a folder with templates of one's own, such as `email.html`",
    "fcm_credentials": "the service account of mobile pushes: its JSON, or the path of a file",
    "fcm_url": "where mobile pushes are handed in",
    "vapid_private_key": "signs web pushes: 32 bytes in base64url",
    "vapid_subject": "whom push services may write to: `mailto:…` or `https://…`",
    "inbox_retention": "how long inbox items are kept",
    "firestore_url": "where owners' schedules and executions are mirrored to: "
    "`firestore://project/database`",
    "otel": "make OpenTelemetry spans of submits and runs (`holdfast[otel]`)",
    "log_level": "least that is logged (`--log-level`): `debug`, `info`, `warning`, `error`",
    "log_format": "`text`, or `json` for one object a line (`--json`)",
}
"""The sentence for each setting; a new setting without one fails here."""


def settings_table() -> str:
    rows = [
        (
            f"`{field.name}`",
            f"`HOLDFAST_{field.name.upper()}`",
            default(field.name, field.default),
            MEANINGS[field.name],
        )
        for field in dataclasses.fields(Settings)
    ]
    return table(("name", "environment", "default", "meaning"), rows)


def other_names() -> str:
    rows = [(f"`{theirs}`", f"`{ours}`") for theirs, ours in OTHER_NAMES.items()]
    return table(("elsewhere", "here"), rows)


DEFAULTS = {
    "max_retries": "by priority",
    "timeout": "by priority",
    "retry_jitter": "with the curve, not with `retry_delay`",
}


def default(name: str, value: object) -> str:
    if value is None:
        return DEFAULTS.get(name, "none")
    if name in {"max_payload", "max_result", "max_body"} and isinstance(value, int):
        return f"`{value // 1024**2}MiB`"
    if isinstance(value, float) and name not in {"retry_multiplier", "rate_limit"}:
        return f"`{duration(value)}`"
    if isinstance(value, tuple | frozenset):
        return ", ".join(f"`{each}`" for each in sorted(value)) or "none"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def by_priority() -> str:
    settings = Settings()
    rows = [
        (f"`{each}`", str(settings.retries_for(each)), f"`{duration(settings.timeout_for(each))}`")
        for each in Priority
    ]
    return table(("priority", "max_retries", "timeout"), rows)


# -- command line ------------------------------------------------------------------------------


# Typer brings its own copy of Click, whose classes are private: the walk goes by shape.


def commands() -> str:
    root = typer.main.get_command(cli)
    return "\n\n".join(command_part(path, command) for path, command in walk("holdfast", root))


def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children: dict[str, Any] | None = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        if not child.hidden:
            yield from walk(f"{path} {name}", child)


def command_part(path: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join([path, *map(argument, arguments), *(["[OPTIONS]"] if options else [])])
    rows = [(f"`{argument(p)}`", meaning(p)) for p in arguments if p.help]
    rows += [(", ".join(f"`{name}`" for name in p.opts), meaning(p)) for p in options]
    parts = [f"### `{path}`", f"```text\n{usage}\n```", plain(command.help)]
    return "\n\n".join([*parts, table(("", "meaning"), rows)] if rows else parts)


def argument(param: Any) -> str:
    name = str(param.metavar or param.name).upper().strip("[].")
    many = "…" if param.nargs == -1 else ""
    return f"{name}{many}" if param.required else f"[{name}{many}]"


def meaning(param: Any) -> str:
    return " ".join(plain(param.help).split())


def plain(text: str | None) -> str:
    """Help without Rich's markup."""
    return re.sub(
        r"\[/?(?:bold|dim|italic|green|red|yellow|cyan)\]", "", inspect.cleandoc(text or "")
    )


# -- names -------------------------------------------------------------------------------------


def api() -> str:
    rows = [
        (f"`{name}`", first_sentences(getattr(holdfast, name)))
        for name in sorted(holdfast.__all__, key=str.lower)
    ]
    return table(("name", "what it is"), rows)


OPTIONS = {
    "name": "the task's name; `module.function` unless given",
    "queue": "the lane it waits in",
    "priority": "`critical`, `high`, `normal` or `low`; or a number from 0 to 9, most urgent last",
    "max_retries": "attempts after the first, or `unlimited`",
    "timeout": "limit on one attempt, or `none`",
    "timeout_growth": "each further attempt's timeout is this many times longer",
    "timeout_cap": "but no longer than this",
    "stop_grace": "how long a body may go on after it was asked to stop; 0: not at all",
    "retry": "how long to wait before the next attempt: `exponential(…)`, `fixed(…)`, a function",
    "retry_for": "the only exceptions that are tried again; any other fails the task at once",
    "no_retry_for": "exceptions that fail the task at once",
    "lock": "one at a time per key: a template over the arguments, or a function of them",
    "concurrency": "so many at a time: a number, or `Limit(5, key=…)`; one or a list",
    "rate": "so many starts per period: `Rate(100, per='1m', key=…)`; one or a list",
    "fair_by": "fair shares per key: a template, a function, or `Fair(by=…, weights=…)`",
    "breaker": "run nothing while too much fails: `Breaker(…)`; one or a list",
    "unique": "one unfinished task per arguments (`True`), per template or per function of them",
    "executor": "`async` or `thread` by the kind of function, or `process`",
    "memory_limit": "what an attempt may add to its process (process executor)",
    "tags": 'words to find it by; `{"batch": "daily"}` is the tag `batch=daily`',
    "requires": "capabilities that a worker must have",
    "keep": "`False`: forgotten, history and all, about a minute after it has succeeded",
    "debounce": "so long after the last submit its task runs: a duration, or `Debounce(…)`",
    "throttle": "for so long later submits get the first one's task: a duration, or `Throttle(…)`",
    "batch": "many tasks in one run, whose handler takes a list of them: `Batch(…)`",
    "secret_fields": "parameters, or places in them (`card.number`), that are shown as stars",
    "delay": "start no sooner than this from now",
    "run_at": "start no sooner than this instant",
    "timezone": "of a `run_at` without an offset",
    "expires": "cancel it if it has not started by then: a duration from now, or an instant",
    "unique_key": "one unfinished task of this name with this key",
    "idempotency_key": "the same key within 24 hours is the same task",
    "owner": "whose it is",
    "callback": "a URL that a server tells when the task has ended",
    "traceparent": "the trace it belongs to; else the submitting task's or the current span's",
    "connection": "your own open connection: the task is part of its transaction",
    "after": "tasks that must have ended before it starts: handles or ids",
    "when": "how they must have ended: `success` (unless given), `failure` or `always`",
}
"""The sentence for each option; a new option without one fails here."""


OF_ONE_SUBMIT = OPTIONS | {
    "retry": "how long to wait before the next attempt: `exponential(…)` or `fixed(…)`",
    "lock": "one at a time per key; taken literally",
}


def options(keywords: type, meanings: dict[str, str]) -> Callable[[], str]:
    def part() -> str:
        rows = [(f"`{name}`", meanings[name]) for name in keywords.__annotations__]
        return table(("option", "meaning"), rows)

    return part


def members(kind: type) -> Callable[[], str]:
    """The public methods and properties of a class, without the `_async` twins."""

    def part() -> str:
        names = [name for name in dir(kind) if not name.startswith("_")]
        rows = [
            (f"`{name}{'()' if callable(getattr(kind, name)) else ''}`", first_sentences(member))
            for name in names
            if not (name.endswith("_async") and name.removesuffix("_async") in names)
            and (member := inspect.getattr_static(kind, name))
            and first_sentences(member)
        ]
        return table(("member", "what it does"), rows)

    return part


# -- metrics -----------------------------------------------------------------------------------


def metrics_table() -> str:
    rows = [
        (
            f"`{metric.full_name}`",
            metric.kind.value,
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.says,
        )
        for metric in METRICS
    ]
    return table(("metric", "kind", "labels", "what it says"), rows)


def alerts_table() -> str:
    rows = [
        (f"`{rule.name}`", rule.severity.value, rule.title, rule.advice, f"`{rule.query}`")
        for rule in RULES
    ]
    return table(("alert", "severity", "it is raised when", "what to do", "query"), rows)


# -- small things ------------------------------------------------------------------------------


def first_sentences(thing: object) -> str:
    """The first paragraph of a docstring, on one line; of a union, its members."""
    if isinstance(thing, types.UnionType):
        members = [f"`{member.__name__}`" for member in thing.__args__]
        return f"One of {', '.join(members)} (`{thing.__args__[0].__module__}`)."
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split())


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )


PARTS: dict[str, Callable[[], str]] = {
    "states-picture": states_picture,
    "states-table": states_table,
    "words": words,
    "other-names": other_names,
    "errors": error_table,
    "rest-routes": rest_routes,
    "rest-problems": rest_problems,
    "settings": settings_table,
    "other-words": other_words,
    "priority-numbers": priority_numbers,
    "same-words": same_words,
    "advice": advice,
    "by-priority": by_priority,
    "commands": commands,
    "api": api,
    "app": members(holdfast.Holdfast),
    "definition": members(Submittable),
    "task-options": options(BatchKeywords, OPTIONS),
    "submit-options": options(SubmitKeywords, OF_ONE_SUBMIT),
    "metrics": metrics_table,
    "alerts": alerts_table,
    "handle": members(holdfast.Handle),
    "context": members(holdfast.Context),
    "http-client": members(holdfast.HttpClient),
    "http-schedules": members(ServerSchedules),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
