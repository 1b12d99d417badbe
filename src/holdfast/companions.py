"""The companions of schedules in a deployment with these settings (`schedules.companions`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.agents.ledger import BudgetKeeper
from holdfast.core.task import Added
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.mirror.address import parse_firestore_url
from holdfast.mirror.companion import MirrorCompanion
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.schedules.companions import Companion, Companions
from holdfast.schedules.deliveries import Deliveries
from holdfast.schedules.firing import Firer
from holdfast.settings import Settings


def companions_of(settings: Settings) -> Companions:
    """Whoever writes or fires a series asks them, so every process must have the same settings."""
    maker = TaskMaker(settings)
    found: list[Companion] = [Deliveries(maker)]
    if settings.firestore_url is not None:
        parse_firestore_url(settings.firestore_url)  # a wrong one is told before anything is stored
        found.append(MirrorCompanion(maker))
    return tuple(found)


def budgets_of(store: Store, settings: Settings) -> BudgetKeeper:
    """Who keeps runs within the budgets of this store, and tells their owners."""
    return BudgetKeeper(store, notice_tasks=Deliveries(TaskMaker(settings)).told_over_budget)


def firer_of(
    store: Store,
    dispatcher: Dispatcher,
    settings: Settings,
    *,
    stored: Sequence[Callable[[Sequence[Added]], Awaitable[None]]] = (),
) -> Firer:
    """Who fires what is due in this store, within its budgets."""
    return Firer(
        store,
        dispatcher,
        settings,
        companions=companions_of(settings),
        budgets=budgets_of(store, settings),
        stored=stored,
    )
