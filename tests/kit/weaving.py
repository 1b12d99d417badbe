"""Compositions made by hand: new tasks with gates, counts and flows, as a submitter makes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from holdfast.core.flow import (
    BATCH,
    Body,
    Children,
    Dependency,
    Flow,
    OnFailure,
    ResultRef,
    Source,
    When,
    body_latch,
    children_latch,
    with_flow,
)
from holdfast.core.gate import Count, Gate, GateKind, gate_name
from holdfast.core.record import Changes
from holdfast.core.task import Json, NewTask, TaskId
from holdfast.testing.factories import new_task


def one(ref: NewTask) -> ResultRef:
    """The result of that task."""
    return ResultRef(Source.ONE, (ref.id,))


def linked(
    name: str,
    arguments: dict[str, Json] | None = None,
    *,
    after: Sequence[NewTask] = (),
    when: When = When.SUCCESS,
    results: dict[str, ResultRef] | None = None,
    rest_of: NewTask | None = None,
    body_of: NewTask | None = None,
    **given: Any,
) -> NewTask:
    """A task that comes after others."""
    flow = Flow(
        after=tuple(Dependency(task.id, when) for task in after),
        results=results or {},
        rest_of=rest_of and rest_of.id,
        body_of=body_of and body_of.id,
    )
    gates = [Gate(GateKind.LATCH, task.id) for task in after]
    if body_of is not None:
        gates.append(Gate(GateKind.LATCH, body_latch(body_of.id)))
    payload = with_flow(json.dumps(arguments or {}).encode(), flow)
    given.setdefault("max_retries", 0)
    return new_task(name=name, payload=payload, gates=tuple(gates), **given)


def chained(links: Sequence[tuple[str, dict[str, Json]]], takes: str = "x") -> list[NewTask]:
    """Links of which each takes the result of the one before."""
    made: list[NewTask] = []
    for name, arguments in links:
        before = made[-1:]
        results = {takes: one(before[0])} if before else {}
        made.append(linked(name, arguments, after=before, results=results))
    return made


def parent(
    name: str = BATCH,
    arguments: dict[str, Json] | None = None,
    *,
    body: Body = Body.NONE,
    on_failure: OnFailure = OnFailure.FAIL_PARENT,
    flow: Flow | None = None,
    says: Children | None = None,
    **given: Any,
) -> NewTask:
    """A task that ends after its children."""
    made = new_task(name=name, **{"max_retries": 0} | given)
    said = says or Children(body, on_failure=on_failure)
    payload = json.dumps(arguments or {}).encode()
    results = {} if flow is None else flow.results
    counts = made.counts
    gates = made.gates
    if said.body is Body.BEFORE:
        counts += (gate_name(GateKind.LATCH, body_latch(made.id)),)
    else:
        gates += (Gate(GateKind.LATCH, children_latch(made.id)),)
    payload = with_flow(payload, Flow(children=said, results=results))
    return made._replace(payload=payload, gates=gates, counts=counts)


def children_results(of: TaskId) -> ResultRef:
    return ResultRef(Source.CHILDREN, (of,))


def family(father: NewTask, children: Sequence[NewTask]) -> list[NewTask]:
    """The parent and its children, which count its latch."""
    latch = gate_name(GateKind.LATCH, children_latch(father.id))
    return [
        father,
        *(c._replace(parent_id=father.id, counts=(*c.counts, latch)) for c in children),
    ]


def stored(tasks: Sequence[NewTask]) -> Changes:
    """All of them in one commit, with the latches that they count."""
    counted: dict[str, int] = {}
    for task in tasks:
        for latch in task.counts:
            counted[latch] = counted.get(latch, 0) + 1
    counts = [Count(latch, number) for latch, number in counted.items()]
    return Changes(uuid4().hex, tuple(tasks), counts=counts)
