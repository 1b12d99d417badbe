"""Parents: tasks that end only after their last child.

A parent stands behind the latch that its children count down. When it is claimed after that, its
body runs now (`after`), or has returned before (`before`: a record holds its result), or there is
none. Its failure policy comes first.
"""

from __future__ import annotations

from typing import Final

import orjson

from holdfast.core.attempt import Claim
from holdfast.core.dropping import BECAUSE_OF_CHILD, blame, culprit_of, not_kept, remembered
from holdfast.core.flow import Body, Children, Flow, OnFailure, ParentResult
from holdfast.core.lifecycle import TERMINAL, Dropped, Failed, Outcome, Succeeded
from holdfast.core.record import Changes, Delete
from holdfast.core.shown import decoded
from holdfast.core.task import Json, Reason, State, Task, TaskId
from holdfast.flow.bodies import BODY
from holdfast.flow.children import children_of, failed_child
from holdfast.flow.results import NOTHING, last_result
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.settings import Settings

MOST_KEPT: Final = 1000
"""Results of children that are kept with a parent without a body. Those of more are read from the
children by whoever wants them.
"""

_BY_DEFAULT: Final = Children(Body.BEFORE)


class Parents:
    """Ends them."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._max_result = settings.max_result
        self._keep = settings.dead_letter_retention

    async def after_body(self, claim: Claim, flow: Flow) -> Outcome | None:
        """The end of a parent whose body has returned before; None if it has not.

        The record is kept if the parent fails: when it is started again, only its children are.
        """
        body = await one_record(self._store, BODY, claim.task_id)
        if body is None:
            return None
        failed = await self._failed(claim, flow.children or _BY_DEFAULT)
        if failed is not None:
            return failed
        gone = Delete(BODY, claim.task_id)
        also = Changes(f"{claim.task_id} {claim.attempt} ended", records=(gone,))
        return Succeeded(body.document.encode(), also)

    async def without_body(self, parent_id: TaskId) -> tuple[Outcome, Task | None] | None:
        """Why a child cannot start whose parent's body runs first: it never returned."""
        parent = await self._store.get(parent_id)
        if parent is None:
            return not_kept(parent_id), None
        if parent.state not in TERMINAL or await one_record(self._store, BODY, parent_id):
            return None
        return Dropped(Reason.DEPENDENCY_FAILED, blame(parent)), parent

    async def after_children(self, claim: Claim, said: Children) -> Outcome | None:
        """The end of a parent whose children have ended; None if its body runs now."""
        failed = await self._failed(claim, said)
        if failed is not None or said.body is not Body.NONE:
            return failed
        if said.result is ParentResult.LAST:
            return Succeeded(await last_result(self._store, claim.task_id))
        return Succeeded(await self._all_results(claim))

    async def _failed(self, claim: Claim, said: Children) -> Failed | None:
        if said.on_failure is OnFailure.CONTINUE:
            return None
        child = await failed_child(self._store, claim.task_id)
        if child is None:
            return None
        note = remembered(claim.task_id, claim.attempt, culprit_of(child), self._keep)
        return Failed(blame(child, BECAUSE_OF_CHILD), also=note)

    async def _all_results(self, claim: Claim) -> bytes:
        """The results of all, as a list; null if they are too many or too much."""
        results: list[Json] = []
        async for child in children_of(self._store, claim.task_id, page=MOST_KEPT + 1):
            if len(results) == MOST_KEPT:
                return NOTHING
            results.append(decoded(child.result) if child.state is State.COMPLETED else None)
        text = orjson.dumps(results)
        return NOTHING if len(text) > self._max_result else text
