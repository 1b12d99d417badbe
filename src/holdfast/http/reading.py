"""From the server's JSON to values: what takes more than the table of words (`core.json_form`)."""

from __future__ import annotations

from holdfast.bounds import read_bounds
from holdfast.core import store_answers, task_answers
from holdfast.core.budget_state import UsageReport, UsageRow
from holdfast.core.execution_answers import TOTALS, USAGE
from holdfast.core.json_form import JsonForm
from holdfast.core.stats import Stats
from holdfast.core.task import Json, State, SubmitOutcome
from holdfast.core.why import Why
from holdfast.http.values import BriefTask, RemotePage, RemoteTask, RemoteToken, Submitted

TASK = JsonForm(task_answers.TaskAnswer, RemoteTask)
BRIEF = JsonForm(task_answers.BriefTask, BriefTask)
TOKEN = JsonForm(store_answers.TokenAnswer, RemoteToken)


def submitted(data: Json) -> Submitted:
    told = (data["queue_position"], data.get("trace_id"))
    return Submitted(data["task_id"], SubmitOutcome(data["outcome"]), State(data["status"]), *told)


def steered(data: Json) -> RemoteTask | BriefTask:
    return TASK.read(data) if "parameters" in data else BRIEF.read(data)


def page(data: Json) -> RemotePage:
    return RemotePage(tasks=tuple(map(TASK.read, data["tasks"])), next=data["next"])


def why(data: Json) -> Why:
    position = data["position"]
    return task_answers.WHY.read(
        data,
        reasons=tuple((each["code"], each["message"]) for each in data["reasons"]),
        ahead=None if position is None else position - 1,
    )


def stats(data: Json) -> Stats:
    return Stats(
        queues=tuple(map(store_answers.QUEUE.read, data["named_queues"])),
        states={State(word): count for word, count in data["statuses"].items()},
        last_minute={State(word): count for word, count in data["last_minute"].items()},
        refused=data["refused"],
    )


def token(data: Json) -> RemoteToken:
    bounds = read_bounds(
        owner=data["owner"],
        queues=data["queues"],
        names=data["task_types"],
        max_priority=data["max_priority"],
        rate=data["rate"],
    )
    return TOKEN.read(data, bounds=bounds)


def usage(data: Json) -> UsageReport:
    """What runs have used."""
    rows = tuple(UsageRow(key=each["key"], totals=TOTALS.read(each)) for each in data["rows"])
    return USAGE.read(data, rows=rows)
