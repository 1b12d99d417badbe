"""Results that are not there yet: what is given to a task instead of them.

    total.submit(x=count.submit(page).result_ref())

The task starts once the other has completed, and finds its result in the place of the reference.
Whether it fits the parameter is checked then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.core.flow import ResultRef, Source
from holdfast.core.task import TaskId
from holdfast.errors import InvalidArguments

NOTHING_LATER: Final[Mapping[str, ResultOf]] = MappingProxyType({})

Results = tuple[tuple[str, ResultRef], ...]
"""By parameter, whose results are its value."""


class ResultOf:
    """A result to be: of tasks that exist (`targets` are ids), or of members of the same batch
    (`is_by_name`). No value that could be stored by mistake: it has no JSON form.
    """

    __slots__ = ("is_by_name", "source", "targets")

    def __init__(self, source: Source, targets: Iterable[str], *, is_by_name: bool = False) -> None:
        self.source = source
        self.targets = tuple(targets)
        self.is_by_name = is_by_name

    @property
    def ref(self) -> ResultRef:
        """The same as a payload says it, of tasks that exist."""
        return ResultRef(self.source, tuple(map(TaskId, self.targets)))

    def __repr__(self) -> str:
        return f"<result of {', '.join(self.targets)}>"


def result_of(*names: str) -> Any:
    """Inside `batch`: the result of the member of this name, as an argument of another one; of
    several names, the list of their results.
    """
    if not names:
        raise InvalidArguments("result_of: expected the name of a member of the batch, got none")
    return ResultOf(Source.ONE if len(names) == 1 else Source.EACH, names, is_by_name=True)


def has_references(values: Iterable[Any]) -> bool:
    """Whether one of these is a result to be, or a list of such."""
    return any(
        type(value) is ResultOf or (type(value) is list and value and type(value[0]) is ResultOf)
        for value in values
    )


def references_in(bound: Mapping[str, Any]) -> dict[str, ResultOf]:
    """The arguments that are results to be, by parameter."""
    found: dict[str, ResultOf] = {}
    for name, value in bound.items():
        if type(value) is ResultOf:
            found[name] = value
        elif type(value) is list and has_references([value]):
            found[name] = _joined(name, value)
    return found


def _joined(name: str, many: list[Any]) -> ResultOf:
    """A list of results as one reference."""
    kinds = {each.is_by_name if type(each) is ResultOf else None for each in many}
    if len(kinds) != 1 or any(each.source is not Source.ONE for each in many if kinds == {False}):
        raise InvalidArguments(
            f"{name}: a list with a result of another task in it must be such results alone, one "
            "task each. Nothing was submitted.",
            problems=((name, "expected results of single tasks, and nothing else"),),
        )
    targets = [target for each in many for target in each.targets]
    return ResultOf(Source.EACH, targets, is_by_name=True in kinds)
