"""Budgets and ledgers as records.

A budget is one record. So is its ledger as of the present day and month, and every write of it is
over the version that was read: by that, any number of processes reserve without exceeding. Days
that are over are records of their own, written together with the ledger they were part of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Final

import orjson

from holdfast.agents.budgets import (
    OWNER,
    Assumed,
    Average,
    Budget,
    Ledger,
    Limits,
    Reservation,
    counted,
)
from holdfast.core.record import Put, Record
from holdfast.core.task import Json, TaskId
from holdfast.core.usage import Totals, Usage
from holdfast.schedules.budgeting import LEDGER

BUDGET: Final = "budget"
"""The kind of budgets. The group is the owner that they are for."""
DAY: Final = "usage"
"""The kind of days that are over. The group is the budget, sorted by day."""

ByDay = tuple[str, Mapping[str, Totals]]


def owner_of(key: str) -> str:
    """The owner that a budget is for; nobody if it is a schedule's."""
    return key.removeprefix(OWNER) if key.startswith(OWNER) else ""


def put_budget(budget: Budget, version: int | None) -> Put:
    said = {
        "day": asdict(budget.day),
        "month": asdict(budget.month),
        "zone": budget.zone,
        "assumed": asdict(budget.assumed),
    }
    group = owner_of(budget.key)
    return Put(BUDGET, budget.key, _text(said), version, group=group, sort=budget.key)


def load_budget(record: Record) -> Budget:
    said = orjson.loads(record.document)
    return Budget(
        key=record.key,
        day=Limits(**said["day"]),
        month=Limits(**said["month"]),
        zone=said["zone"],
        assumed=Assumed(**said["assumed"]),
    )


def put_ledger(key: str, ledger: Ledger, version: int) -> Put:
    said = {
        "day": ledger.day,
        "folded_at": ledger.folded_at,
        "today": _by_schedule(ledger.today),
        "month": asdict(ledger.month),
        "open": {
            task_id: [one.schedule, one.day, *_numbers(one.estimate)]
            for task_id, one in ledger.open.items()
        },
        "averages": {
            schedule: [each.runs, *_numbers(each.usage)]
            for schedule, each in ledger.averages.items()
        },
    }
    return Put(LEDGER, key, _text(said), version)


def load_ledger(record: Record) -> Ledger:
    said = orjson.loads(record.document)
    return counted(
        Ledger(
            day=said["day"],
            folded_at=said["folded_at"] and datetime.fromisoformat(said["folded_at"]),
            today=_totals(said["today"]),
            month=Totals(**said["month"]),
            open={
                TaskId(task_id): Reservation(schedule, day, _usage(*numbers))
                for task_id, (schedule, day, *numbers) in said["open"].items()
            },
            averages={
                schedule: Average(runs, _usage(*numbers))
                for schedule, (runs, *numbers) in said["averages"].items()
            },
        )
    )


def day_key(key: str, day: str) -> str:
    return f"{day} {key}"


def put_day(key: str, day: str, used: Mapping[str, Totals]) -> Put:
    """Over whichever version: only who writes the budget's ledger writes its days."""
    return Put(DAY, day_key(key, day), _text(_by_schedule(used)), group=key, sort=day)


def load_day(record: Record) -> ByDay:
    return record.sort, _totals(orjson.loads(record.document))


def _numbers(usage: Usage) -> tuple[float, int, int, float]:
    return usage.units, usage.tokens_in, usage.tokens_out, usage.cost


def _usage(units: float, tokens_in: int, tokens_out: int, cost: float) -> Usage:
    return Usage(units=units, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)


def _by_schedule(used: Mapping[str, Totals]) -> Json:
    return {schedule: asdict(each) for schedule, each in used.items()}


def _totals(said: Json) -> dict[str, Totals]:
    return {schedule: Totals(**each) for schedule, each in said.items()}


def _text(said: Json) -> str:
    return orjson.dumps(said).decode()
