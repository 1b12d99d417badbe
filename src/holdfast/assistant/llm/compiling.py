"""From a model's slots to the mapping that `parse` answers, by the same compiler as the grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.assistant.compiler import compile_slots
from holdfast.assistant.llm.answers import Unusable
from holdfast.assistant.llm.changing import changed
from holdfast.assistant.plan import REASONS, Plan, Refused, refusal
from holdfast.assistant.slots import Slots
from holdfast.ports.planner import PlanRequest

_MALFORMED: Final = frozenset(
    REASONS[trouble][1]
    for trouble in ("contradiction", "not_understood", "impossible_time", "impossible_date")
)
"""Refusals that speak of the slots rather than of the request, if the model named no trouble."""


def compiled(slots: Slots, request: PlanRequest) -> Mapping[str, Any]:
    """What the slots mean; `Unusable` if nothing can be made of them."""
    try:
        result = _result(slots, request)
    except Refused as refused:
        result = refused.refusal.mapping()
    except (LookupError, TypeError, ValueError, ArithmeticError, AssertionError):
        # The grammar never fills slots in such a way; a model may, and is told so.
        raise Unusable("slots: they do not go together") from None
    if slots.trouble is None and result.get("reason") in _MALFORMED:
        fields = ", ".join(result["fields"])
        told = f"{result['reason']} ({fields}); read the request again, or set trouble"
        raise Unusable(f"slots: {told}")
    return result


def _result(slots: Slots, request: PlanRequest) -> Mapping[str, Any]:
    if slots.operation is not None and slots.trouble is None:
        return changed(slots, request)
    plan = compile_slots(slots, request.now, request.tz)
    if isinstance(plan, Plan) and not slots.purpose:
        return refusal("no_purpose").mapping()
    return plan.mapping()
